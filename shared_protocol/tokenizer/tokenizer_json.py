"""The tokenizer of a model's folder: tokenizer.json, and what its neighbours say of BOS and EOS.

Added tokens are taken out of the library's hands and matched by our own rules, so that what a user types stays text here as well;
the library sees only plain text between them, and never a token that plain text must not make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import tokenizers
from tokenizers import models

from ..errors import ModelFileError
from .added_tokens import SPACES, AddedToken, AddedTokens
from .byte_level import ByteLevelBpe, merging_model
from .folder_files import flag, read_object, template_of_folder, token_ids, token_text
from .json_parts import begins_and_ends, build, members
from .library import LibraryEncoder, guard, normalized
from .sentencepiece import SPACE, byte_of, piece_bytes
from .tokenizer import Encoder, Tokenizer, fingerprint_of
from .vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, Vocabulary, vocabulary_of

MAX_TOKENS = 1 << 21


def tokenizer_of_folder(folder: str | Path, rows: int | None = None) -> Tokenizer:
    """Build the tokenizer of a folder with tokenizer.json. `rows`: of the model's logits, often a few more than there are tokens; the ids
    past them are no text, and change no fingerprint. Raises ModelFileError naming the file and the part at fault."""
    folder = Path(folder)
    root = read_object(folder / "tokenizer.json")
    if root is None:
        raise ModelFileError(
            "there is no tokenizer.json beside the model's config.json",
            hint="put the model's own there, as its publisher or transformers saves it",
        )
    config = read_object(folder / "tokenizer_config.json") or {}
    generation = read_object(folder / "generation_config.json") or {}
    template = template_of_folder(folder)
    model = _model(root)
    vocabulary, added = _vocabulary(root, model, template)
    before, behind = begins_and_ends(root.get("post_processor"))
    if len(before) > 1:
        raise ModelFileError(f"tokenizer.json: the template puts {len(before)} special tokens before a text, at most BOS is supported")
    bos_id, eos_id = _named_id(config, "bos_token", before, vocabulary), _named_id(config, "eos_token", behind, vocabulary)
    add_bos, add_eos = flag(config, "add_bos_token"), flag(config, "add_eos_token")
    ends = [number for number in [eos_id, *token_ids(generation, "eos_token_id", "generation_config.json")] if number is not None]
    tokenizer_parts = {name: root.get(name) for name in ("normalizer", "pre_tokenizer")}
    settings = {name: value for name, value in model.items() if name not in ("vocab", "merges")}
    decided = msgspec.json.encode([tokenizer_parts, settings, root.get("added_tokens")], order="deterministic").decode()
    fingerprint = fingerprint_of(
        ["tokenizer.json", decided],
        [vocabulary.tokens, ["\0".join(pair) for pair in model["merges"]]],
        [vocabulary.kinds, [score for _, score in model["vocab"]] if model["type"] == "Unigram" else []],
    )
    if rows is not None:
        vocabulary = _padded(vocabulary, rows)
    return Tokenizer(
        vocabulary,
        _encoder(root, model, vocabulary, frozenset(token.token_id for token in added if token.guarded)),
        AddedTokens(added, SPACES),
        bos_id=bos_id,
        add_bos=bool(before) if add_bos is None else add_bos,
        end_ids=list(dict.fromkeys(ends)),
        add_eos=bool(behind) if add_eos is None else add_eos,
        space_first=_space_first(root),
        fingerprint=fingerprint,
    )


def _padded(vocabulary: Vocabulary, rows: int) -> Vocabulary:
    lacking = rows - len(vocabulary)
    if lacking < 0:
        raise ModelFileError(f"'vocab_size' in config.json is {rows}, tokenizer.json has {len(vocabulary)} tokens")
    return replace(vocabulary, tokens=[*vocabulary.tokens, *[""] * lacking], kinds=[*vocabulary.kinds, *[UNUSED] * lacking])


def _model(root: dict[str, Any]) -> dict[str, Any]:
    """The checked model: `merges` as pairs, `vocab` as a dict (BPE) or a list of (token, score) (Unigram)."""
    model = root.get("model")
    if not isinstance(model, dict):
        raise ModelFileError("tokenizer.json has no 'model'")
    kind = model.get("type", "BPE" if "merges" in model else None)
    if kind not in ("BPE", "Unigram"):
        raise ModelFileError(f"tokenizer.json: the model {kind!r:.40} is not supported; supported: BPE, Unigram")
    try:
        merges = msgspec.convert([m.split(" ") if isinstance(m, str) else m for m in model.get("merges") or []], list[tuple[str, str]])
        vocab = msgspec.convert(model.get("vocab"), dict[str, int] if kind == "BPE" else list[tuple[str, float]])
    except (msgspec.ValidationError, TypeError) as error:
        raise ModelFileError(f"tokenizer.json: 'vocab' or 'merges' of the model is malformed: {error!s:.100}") from None
    for option in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(option):
            raise ModelFileError(f"tokenizer.json: the model's {option!r} is not supported")
    for option in ("fuse_unk", "byte_fallback", "ignore_merges"):
        if not isinstance(model.get(option) or False, bool):
            raise ModelFileError(f"tokenizer.json: the model's {option!r} must be true or false")
    return {**model, "type": kind, "merges": merges, "vocab": vocab}


def _vocabulary(root: dict[str, Any], model: dict[str, Any], template: str | None) -> tuple[Vocabulary, list[AddedToken]]:
    ids = dict(model["vocab"]) if model["type"] == "BPE" else {token: number for number, (token, _) in enumerate(model["vocab"])}
    if len(ids) != len(model["vocab"]):
        raise ModelFileError("tokenizer.json: the model's 'vocab' holds a token twice")
    added = [_added_token(item) for item in _list(root, "added_tokens")]
    for token, _ in added:
        if ids.setdefault(token.text, token.token_id) != token.token_id:
            raise ModelFileError(f"tokenizer.json: the added token {token.text!r:.40} has an id in the model too, another one")
    highest = max(ids.values(), default=-1)
    if not 0 <= highest < MAX_TOKENS or min(ids.values()) < 0:
        raise ModelFileError(
            f"tokenizer.json: ids from {min(ids.values(), default=0)} to {highest}; at most {MAX_TOKENS} tokens are possible"
        )
    tokens, kinds = [""] * (highest + 1), [UNUSED] * (highest + 1)
    for text, number in ids.items():
        if tokens[number]:
            raise ModelFileError(f"tokenizer.json: {tokens[number]!r:.40} and {text!r:.40} have the same id {number}")
        tokens[number] = text
        kinds[number] = BYTE if model.get("byte_fallback") and byte_of(text) is not None else NORMAL
    unknown = _unknown(model, ids)
    if unknown is not None:
        kinds[unknown] = UNKNOWN
    for token, special in added:
        kinds[token.token_id] = CONTROL if special else USER_DEFINED
    vocabulary = vocabulary_of(tokens, kinds, "tokenizer.json:model.")
    normalizer = build("normalizer", root.get("normalizer"))
    for item, (token, _) in zip(root.get("added_tokens") or [], added, strict=True):
        if item.get("normalized") and normalizer is not None and normalized(normalizer, token.text).removeprefix(SPACE) != token.text:
            raise ModelFileError(f"tokenizer.json: the added token {token.text!r:.40} is matched in normalised text only: not supported")
    return vocabulary, [replace(token, guarded=vocabulary.guarded(token.token_id, template)) for token, _ in added]


def _added_token(item: Any) -> tuple[AddedToken, bool]:
    """The token, and whether it is special."""
    if not isinstance(item, dict) or not isinstance(item.get("content"), str) or type(item.get("id")) is not int:
        raise ModelFileError("tokenizer.json: each of 'added_tokens' must have an integer 'id' and a string 'content'")
    flags = {name: item.get(name, False) for name in ("lstrip", "rstrip", "single_word", "special", "normalized")}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ModelFileError(f"tokenizer.json: {name!r} of the added token {item['content']!r:.40} must be true or false")
    strips = {name: flags[name] for name in ("lstrip", "rstrip", "single_word")}
    return AddedToken(item["content"], item["id"], **strips), flags["special"]


def _unknown(model: dict[str, Any], ids: dict[str, int]) -> int | None:
    named, number = model.get("unk_token"), model.get("unk_id")
    if model["type"] == "BPE":
        if named is not None and (not isinstance(named, str) or named not in ids):
            raise ModelFileError(f"tokenizer.json: 'unk_token' {named!r:.40} is not in the vocabulary")
        return None if named is None else ids[named]
    if number is not None and (type(number) is not int or not 0 <= number < len(model["vocab"])):
        raise ModelFileError(f"tokenizer.json: 'unk_id' {number!r:.40} is outside the vocabulary of {len(model['vocab'])}")
    return number


def _encoder(root: dict[str, Any], model: dict[str, Any], vocabulary: Vocabulary, guarded: frozenset[int]) -> Encoder:
    normalizer = build("normalizer", root.get("normalizer"))
    cutting = members("pre_tokenizer", root.get("pre_tokenizer"))
    members("decoder", root.get("decoder"))
    if any(part["type"] == "ByteLevel" for part in cutting):
        if model["type"] != "BPE":
            raise ModelFileError("tokenizer.json: a byte-level Unigram is not supported")
        splitter = build("pre_tokenizer", root["pre_tokenizer"])
        ignore_merges = bool(model.get("ignore_merges"))
        return ByteLevelBpe(vocabulary, model["merges"], splitter, guarded, ignore_merges=ignore_merges, normalizer=normalizer)
    unknown = _unknown(model, vocabulary.ids)
    fallback = bool(model.get("byte_fallback")) and sum(kind == BYTE for kind in vocabulary.kinds) == 256
    if unknown is None and not fallback:
        raise ModelFileError(
            "tokenizer.json: characters that the vocabulary lacks have neither an unknown token nor bytes: text would vanish"
        )
    engine, ids = _plain_model(model, vocabulary, guarded - {unknown}, unknown)
    first, later = (_pipeline(engine, normalizer, root.get("pre_tokenizer"), starts) for starts in (True, False))
    bounded = fallback or (model["type"] == "BPE" and not model.get("fuse_unk"))
    return LibraryEncoder(first, later, ids, [piece_bytes(vocabulary, number) for number in range(len(vocabulary))], bounded=bounded)


def _plain_model(
    model: dict[str, Any], vocabulary: Vocabulary, hidden: frozenset[int | None], unknown: int | None
) -> tuple[models.Model, list[int] | None]:
    """The library's model without the `hidden` tokens, and the vocabulary's ids by its own where they differ."""
    if model["type"] == "Unigram":
        kept = [number for number in range(len(model["vocab"])) if number not in hidden]
        place = None if unknown is None else kept.index(unknown)
        scored = [
            ("" if number == unknown else model["vocab"][number][0], model["vocab"][number][1]) for number in kept
        ]  # no text spells it
        fallback = bool(model.get("byte_fallback"))
        return guard(lambda: models.Unigram(scored, place, fallback), "tokenizer.json: the Unigram model"), kept
    mergeable = {text: number for text, number in vocabulary.ids.items() if number not in hidden}
    made = {left + right for left, right in model["merges"]}
    for number, kind in enumerate(vocabulary.kinds):
        if kind == BYTE and vocabulary.tokens[number] in made:
            raise ModelFileError(f"tokenizer.json: the merges can make {vocabulary.tokens[number]!r} out of plain text")
    options = {name: model[name] for name in ("unk_token", "fuse_unk", "byte_fallback") if model.get(name) is not None}
    return merging_model(vocabulary, mergeable, model["merges"], ignore_merges=bool(model.get("ignore_merges")), **options), None


def _pipeline(engine: models.Model, normalizer: Any, pre_tokenizer: Any, starts: bool) -> tokenizers.Tokenizer:
    whole = tokenizers.Tokenizer(engine)
    if normalizer is not None:
        whole.normalizer = normalizer
    if not starts:  # the library tells by its place in the whole text whether a piece is the first
        pre_tokenizer = _without_first_space(pre_tokenizer)
    if (splitter := build("pre_tokenizer", pre_tokenizer)) is not None:
        whole.pre_tokenizer = splitter
    return whole


def _without_first_space(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "Metaspace" and part.get("prepend_scheme") == "first":
        return {**part, "prepend_scheme": "never", "add_prefix_space": False}
    return {**part, "pretokenizers": [_without_first_space(item) for item in part["pretokenizers"]]} if "pretokenizers" in part else part


def _space_first(root: dict[str, Any]) -> bool:
    """Whether a text gets a space in front."""
    cutting = members("pre_tokenizer", root.get("pre_tokenizer"))
    written = any(part["type"] == "Prepend" for part in members("normalizer", root.get("normalizer")))
    metaspace = any(part["type"] == "Metaspace" and part.get("prepend_scheme", "always") != "never" for part in cutting)
    return written or metaspace or any(part["type"] == "ByteLevel" and part.get("add_prefix_space") for part in cutting)


def _named_id(config: dict[str, Any], key: str, template: Sequence[str], vocabulary: Vocabulary) -> int | None:
    """The token that tokenizer_config.json names under `key`, else the first that the template of texts puts there."""
    text, where = token_text(config, key), f"tokenizer_config.json: {key!r}"
    if not text:
        text, where = next(iter(template), None), "tokenizer.json: a special token of the 'post_processor'"
    if text is not None and text not in vocabulary.ids:
        raise ModelFileError(f"{where} is {text!r:.40}, which is not in the vocabulary")
    return None if text is None else vocabulary.ids[text]


def _list(root: dict[str, Any], name: str) -> Sequence[Any]:
    value = root.get(name) or []
    if not isinstance(value, list):
        raise ModelFileError(f"tokenizer.json: {name!r} must be a list")
    return value
