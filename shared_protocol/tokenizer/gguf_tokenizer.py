"""The tokenizer that a GGUF file's metadata describes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ModelFileError
from ..gguf import GgufFile
from .added_tokens import AddedToken, AddedTokens
from .byte_level import ByteLevelBpe
from .pre_tokenizers import ADD_BOS, IGNORE_MERGES, pre_tokenizer
from .sentencepiece import SentencePieceBpe
from .tokenizer import Tokenizer, fingerprint_of
from .unigram import unigram
from .vocabulary import CONTROL, UNKNOWN, USER_DEFINED, Vocabulary, vocabulary_of

KEEP_SPACE = ("<unk>", "<s>", "<|endoftext|>")  # of Phi-3's marks
END_TOKEN_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


def tokenizer_of(gguf: GgufFile) -> Tokenizer:
    """Build the tokenizer that a GGUF file describes. Raises ModelFileError naming the key at fault."""
    kinds = {"gpt2": (_byte_level, "byte-level BPE"), "llama": (_sentencepiece, "SentencePiece BPE"), "t5": (_unigram, "Unigram")}
    kind = gguf.metadata.get("tokenizer.ggml.model")
    if not isinstance(kind, str) or kind not in kinds:
        supported = ", ".join(f"{name} ({what})" for name, (_, what) in kinds.items())
        raise ModelFileError(f"{gguf.path.name}: the tokenizer model {kind!r:.40} is not supported; supported: {supported}")
    return kinds[kind][0](gguf)


def _byte_level(gguf: GgufFile) -> Tokenizer:
    pre = gguf.metadata.get("tokenizer.ggml.pre")
    if not isinstance(pre, str):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.pre' is missing: guessing it would change the tokens")
    splitter = pre_tokenizer(pre)
    merges, template = _strings(gguf, "merges"), _template(gguf)
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    vocabulary = vocabulary_of(_strings(gguf, "tokens"), _kinds(gguf))
    added = _added_tokens(gguf, vocabulary, template)
    return Tokenizer(
        vocabulary,
        ByteLevelBpe(vocabulary, pairs, splitter, _guarded(added), ignore_merges=pre in IGNORE_MERGES),
        AddedTokens(added),
        bos_id=_id(gguf, "bos_token_id"),
        add_bos=_flag(gguf, "add_bos_token", pre in ADD_BOS),
        end_ids=_end_ids(gguf),
        add_eos=_flag(gguf, "add_eos_token", False),
        fingerprint=fingerprint_of(["gpt2", pre], [vocabulary.tokens, merges], [vocabulary.kinds]),
    )


def _sentencepiece(gguf: GgufFile) -> Tokenizer:
    template = _template(gguf)
    vocabulary = vocabulary_of(_strings(gguf, "tokens"), _kinds(gguf))
    scores = _scores(gguf, len(vocabulary))
    space_first = _flag(gguf, "add_space_prefix", True)
    added = _added_tokens(gguf, vocabulary, template)
    return Tokenizer(
        vocabulary,
        SentencePieceBpe(vocabulary, scores, _guarded(added), space_first=space_first),
        AddedTokens(added),
        bos_id=_id(gguf, "bos_token_id", 1),
        add_bos=_flag(gguf, "add_bos_token", True),
        end_ids=_end_ids(gguf) or [2],
        add_eos=_flag(gguf, "add_eos_token", False),
        space_first=space_first,
        fingerprint=fingerprint_of(["llama", repr(space_first), repr(_strips(gguf))], [vocabulary.tokens], [vocabulary.kinds, scores]),
    )


def _unigram(gguf: GgufFile) -> Tokenizer:
    if "tokenizer.ggml.precompiled_charsmap" in gguf.metadata:
        raise ModelFileError(f"{gguf.path.name}: 'tokenizer.ggml.precompiled_charsmap', a normalisation by table, is not supported")
    template = _template(gguf)
    vocabulary = vocabulary_of(_strings(gguf, "tokens"), _kinds(gguf))
    scores = _scores(gguf, len(vocabulary))
    space_first, merge_spaces = _flag(gguf, "add_space_prefix", False), _flag(gguf, "remove_extra_whitespaces", False)
    added = _added_tokens(gguf, vocabulary, template)
    unknown = _id(gguf, "unknown_token_id", 2)
    return Tokenizer(
        vocabulary,
        unigram(vocabulary, scores, unknown, _guarded(added), space_first=space_first, merge_spaces=merge_spaces),
        AddedTokens(added),
        bos_id=_id(gguf, "bos_token_id"),
        add_bos=_flag(gguf, "add_bos_token", False),
        end_ids=_end_ids(gguf) or [1],
        add_eos=_flag(gguf, "add_eos_token", True),
        space_first=space_first,
        fingerprint=fingerprint_of(["t5", repr((space_first, merge_spaces, unknown))], [vocabulary.tokens], [vocabulary.kinds, scores]),
    )


def _added_tokens(gguf: GgufFile, vocabulary: Vocabulary, template: str | None) -> list[AddedToken]:
    strips = _strips(gguf)
    return [
        AddedToken(
            text := vocabulary.tokens[number], number, vocabulary.guarded(number, template), rstrip=strips and text not in KEEP_SPACE
        )
        for number, kind in enumerate(vocabulary.kinds)
        if kind in (CONTROL, UNKNOWN, USER_DEFINED)
    ]


def _strips(gguf: GgufFile) -> bool:
    """Phi-3's marks take the white space behind them; GGUF has no key for it, so the name decides, as in llama.cpp."""
    name = str(gguf.metadata.get("general.name", "")).lower()
    return "phi-3" in name or "phi3" in name


def _guarded(added: Sequence[AddedToken]) -> frozenset[int]:
    return frozenset(token.token_id for token in added if token.guarded)


def _scores(gguf: GgufFile, count: int) -> list[float]:
    scores = gguf.metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, np.ndarray) or scores.dtype.kind not in "if":
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.scores' must be an array of numbers")
    if len(scores) != count:
        raise ModelFileError(f"{gguf.path.name}: 'tokenizer.ggml.scores' has {len(scores)} entries for {count} tokens")
    if not np.isfinite(scores).all():
        raise ModelFileError(f"{gguf.path.name}: 'tokenizer.ggml.scores' number {int(np.argmin(np.isfinite(scores)))} is not finite")
    listed: list[float] = scores.tolist()
    return listed


def _template(gguf: GgufFile) -> str | None:
    template = gguf.metadata.get("tokenizer.chat_template")
    return template if isinstance(template, str) else None


def _end_ids(gguf: GgufFile) -> list[int]:
    return [number for key in END_TOKEN_KEYS if (number := _id(gguf, key)) is not None]


def _kinds(gguf: GgufFile) -> list[int] | None:
    kinds = gguf.metadata.get("tokenizer.ggml.token_type")
    if kinds is None:
        return None
    if not isinstance(kinds, np.ndarray) or kinds.dtype.kind not in "iu":
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.token_type' must be an array of integers")
    listed: list[int] = kinds.tolist()
    return listed


def _strings(gguf: GgufFile, key: str) -> list[str]:
    value = gguf.metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(value, list):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.{key}' must be an array of strings")
    return value


def _id(gguf: GgufFile, key: str, default: int | None = None) -> int | None:
    value = gguf.metadata.get(f"tokenizer.ggml.{key}", default)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.{key}' must be a token id, found {type(value).__name__}")
    return value


def _flag(gguf: GgufFile, key: str, default: bool) -> bool:
    value = gguf.metadata.get(f"tokenizer.ggml.{key}", default)
    if not isinstance(value, bool):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.{key}' must be true or false, found {type(value).__name__}")
    return value
