"""tokenizer.json: what it holds, from the first brace to a few texts through the tokenizer, which must come back whole."""

from __future__ import annotations

import json
from typing import Any

from hybrid.shared_protocol.errors import HybridError
from hybrid.shared_protocol.tokenizer.tokenizer_json import tokenizer_of_folder
from hybrid.tests.fuzz.scratch import empty_folder
from hybrid.tests.support.gguf_writer import tiny_vocabulary
from hybrid.tests.support.tokenizer_json import LLAMA_DECODER, LLAMA_NORMALIZER, METASPACE, added, begin_with, byte_level_json

TEXTS = ("", "Hello, world! 123", "<s>user\nüé 😊</s>\r\n\t", "\0\ufffd" * 3)


def run(data: bytes) -> None:
    folder = empty_folder("tokenizer")
    (folder / "tokenizer.json").write_bytes(data)
    try:
        tokenizer = tokenizer_of_folder(folder)
        for text in TEXTS:
            ids = tokenizer.encode(text)
            assert all(0 <= number < tokenizer.vocab_size for number in ids)
            tokenizer.decode(ids)
        for number in {0, tokenizer.vocab_size - 1}:
            tokenizer.token_text(number)
    except HybridError:
        return


def seeds() -> list[bytes]:
    """A byte-level vocabulary, and small ones with pieces, by merges and by scores."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "e", "l", "o", "▁e", "lo", "el"]
    marks: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [added(number, text) for number, text in enumerate(pieces[:3])],
        "normalizer": LLAMA_NORMALIZER,
        "pre_tokenizer": None,
        "post_processor": begin_with("<s>", 1),
        "decoder": LLAMA_DECODER,
    }
    merges = [["▁", "e"], ["l", "o"], ["e", "l"]]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    bpe = {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True}
    unigram = {
        "type": "Unigram",
        "unk_id": 0,
        "vocab": [[piece, -float(number)] for number, piece in enumerate(pieces)],
        "byte_fallback": True,
    }
    roots = [
        byte_level_json(*tiny_vocabulary(300)),
        {**marks, "model": bpe},
        {**marks, "model": unigram, "normalizer": None, "pre_tokenizer": METASPACE},
        {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}},
    ]
    return [json.dumps(root, ensure_ascii=False, separators=(",", ":")).encode() for root in roots]
