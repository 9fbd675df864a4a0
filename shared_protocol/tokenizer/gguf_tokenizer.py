"""The tokenizer that a GGUF file's metadata describes."""

from __future__ import annotations

import numpy as np

from ..errors import ModelFileError
from ..gguf import GgufFile
from .added_tokens import AddedToken
from .byte_level import ByteLevelBpe
from .pre_tokenizers import ADD_BOS
from .tokenizer import Tokenizer, fingerprint_of
from .vocabulary import CONTROL, UNKNOWN, USER_DEFINED, vocabulary_of

END_TOKEN_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
SUPPORTED = "gpt2 (byte-level BPE)"


def tokenizer_of(gguf: GgufFile) -> Tokenizer:
    """Build the tokenizer that a GGUF file describes. Raises ModelFileError naming the key at fault."""
    kind = gguf.metadata.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise ModelFileError(f"{gguf.path.name}: the tokenizer model {kind!r:.40} is not supported; supported: {SUPPORTED}")
    return _byte_level(gguf)


def _byte_level(gguf: GgufFile) -> Tokenizer:
    pre = gguf.metadata.get("tokenizer.ggml.pre")
    if not isinstance(pre, str):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.pre' is missing: guessing it would change the tokens")
    tokens, merges = _strings(gguf, "tokens"), _strings(gguf, "merges")
    vocabulary = vocabulary_of(tokens, _kinds(gguf))
    template = _template(gguf)
    added = [
        AddedToken(vocabulary.tokens[number], number, vocabulary.guarded(number, template))
        for number, kind in enumerate(vocabulary.kinds)
        if kind in (CONTROL, UNKNOWN, USER_DEFINED)
    ]
    guarded = frozenset(token.token_id for token in added if token.guarded)
    return Tokenizer(
        vocabulary,
        ByteLevelBpe(vocabulary, merges, pre, guarded),
        added,
        bos_id=_id(gguf, "bos_token_id"),
        add_bos=_flag(gguf, "add_bos_token", pre in ADD_BOS),
        end_ids=_end_ids(gguf),
        add_eos=_flag(gguf, "add_eos_token", False),
        fingerprint=fingerprint_of(["gpt2", pre, repr(template)], [tokens, merges], [vocabulary.kinds]),
    )


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


def _id(gguf: GgufFile, key: str) -> int | None:
    value = gguf.metadata.get(f"tokenizer.ggml.{key}")
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.{key}' must be a token id, found {type(value).__name__}")
    return value


def _flag(gguf: GgufFile, key: str, default: bool) -> bool:
    value = gguf.metadata.get(f"tokenizer.ggml.{key}", default)
    if not isinstance(value, bool):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.{key}' must be true or false, found {type(value).__name__}")
    return value
