"""Which parts of a tokenizer.json are run: those that keep the text whole, so that ids can be turned back into it.

A part that is not on the list is refused by its name; the others are parsed by the library, from these few lines of JSON alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import tokenizers

from ..errors import ModelFileError
from .library import guard

MAX_DEPTH = 8
# kind of part -> (the field of a sequence's members, types)
PARTS: Mapping[str, tuple[str, frozenset[str]]] = {
    "normalizer": (
        "normalizers",
        frozenset({"NFC", "NFD", "NFKC", "NFKD", "Replace", "Prepend", "Lowercase", "Strip", "StripAccents", "Nmt", "Precompiled"}),
    ),
    "pre_tokenizer": ("pretokenizers", frozenset({"ByteLevel", "Split", "Digits", "Metaspace", "Punctuation"})),
    "decoder": ("decoders", frozenset({"ByteLevel", "Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"})),
    "post_processor": ("processors", frozenset({"ByteLevel", "TemplateProcessing"})),
}


def members(kind: str, part: Any) -> list[dict[str, Any]]:
    """The parts of a sequence, flat and checked; one for a single part, none for null."""
    if part is None:
        return []
    field, known = PARTS[kind]
    found: list[dict[str, Any]] = []
    pending: list[tuple[Any, int]] = [(part, 0)]
    while pending:
        item, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ModelFileError(f"tokenizer.json: {kind!r} nests deeper than {MAX_DEPTH}")
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            raise ModelFileError(f"tokenizer.json: {kind!r} must be an object with a 'type', found {type(item).__name__}")
        name = item["type"]
        if name == "Sequence":
            if not isinstance(item.get(field), list):
                raise ModelFileError(f"tokenizer.json: the sequence in {kind!r} has no list {field!r}")
            pending += [(member, depth + 1) for member in reversed(item[field])]
        elif name not in known:
            raise ModelFileError(f"tokenizer.json: the {kind} {name!r:.40} is not supported; supported: {', '.join(sorted(known))}")
        else:
            found.append(item)
    for item in found:
        if item.get("behavior") == "Removed":
            raise ModelFileError(f"tokenizer.json: the {kind} {item['type']!r} removes text, which could not be written back")
    return found


def build(kind: str, part: Any) -> Any:
    """The library's object for a normalizer or pre-tokenizer, None for null. Raises ModelFileError saying what is wrong with it."""
    if not members(kind, part):
        return None
    skeleton = {**_EMPTY, kind: part}
    whole = guard(lambda: tokenizers.Tokenizer.from_str(msgspec.json.encode(skeleton).decode()), f"tokenizer.json: {kind!r}")
    return getattr(whole, kind)


_EMPTY: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": None,
    "model": {"type": "BPE", "vocab": {}, "merges": []},
}


def begins_and_ends(post_processor: Any) -> tuple[list[str], list[str]]:
    """Special tokens that the template of a single text puts before and behind it."""
    before: list[str] = []
    behind: list[str] = []
    for part in members("post_processor", post_processor):
        if part["type"] != "TemplateProcessing":
            continue
        into, single = before, part.get("single")
        for item in single if isinstance(single, list) else []:
            if isinstance(item, dict) and "Sequence" in item:
                into = behind
            elif isinstance(item, dict) and isinstance(item.get("SpecialToken"), dict):
                into.append(str(item["SpecialToken"].get("id")))
    return before, behind
