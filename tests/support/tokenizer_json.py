"""Folders with tokenizer.json, made from the vocabularies of GGUF files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hybrid.tests.support.sentencepiece import Vocabulary

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
LLAMA_NORMALIZER = {
    "type": "Sequence",
    "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}],
}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
LLAMA_DECODER = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}


def added(number: int, text: str, special: bool = True, **flags: bool) -> dict[str, Any]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": number, "content": text, "special": special, **plain, **flags}


def begin_with(token: str, number: int) -> dict[str, Any]:
    """A post-processor that puts one token before a text."""
    first, text = {"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    tokens = {token: {"id": token, "ids": [number], "tokens": [token]}}
    return {"type": "TemplateProcessing", "single": [first, text], "pair": [first, text, text], "special_tokens": tokens}


def byte_level_json(tokens: Sequence[str], merges: Sequence[str], kinds: Sequence[int], **changes: Any) -> dict[str, Any]:
    """Specials are added tokens only when their kind says so; words are cut as SmolLM2's publisher cuts them."""
    root: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(number, token, kinds[number] == 3) for number, token in enumerate(tokens) if kinds[number] in (3, 4)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL]},
        "post_processor": None,
        "decoder": BYTE_LEVEL,
        "model": {"type": "BPE", "vocab": {token: number for number, token in enumerate(tokens)}, "merges": list(merges)},
    }
    return {**root, **changes}


def sentencepiece_json(parts: Vocabulary, **changes: Any) -> dict[str, Any]:
    """The vocabulary as merges: every way to make a token, by the token's score."""
    tokens, kinds, scores = parts
    ids = {token: number for number, token in enumerate(tokens) if kinds[number] == 1}
    merges = []
    for token in sorted((token for token in ids if len(token) > 1), key=lambda token: -scores[ids[token]]):
        merges += [[token[:cut], token[cut:]] for cut in range(1, len(token)) if token[:cut] in ids and token[cut:] in ids]
    root: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(n, token, kinds[n] in (2, 3)) for n, token in enumerate(tokens) if kinds[n] in (2, 3, 4)],
        "normalizer": LLAMA_NORMALIZER,
        "pre_tokenizer": None,
        "post_processor": begin_with("<s>", 1),
        "decoder": LLAMA_DECODER,
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": merges,
        },
    }
    return {**root, **changes}


def write_folder(folder: Path, root: object, **files: Mapping[str, object]) -> Path:
    """`files`: tokenizer_config, generation_config."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"tokenizer": root, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return folder
