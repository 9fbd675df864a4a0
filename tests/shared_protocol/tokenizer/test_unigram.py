"""Unigram vocabularies of GGUF files against llama.cpp."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest
from hybrid.shared_protocol.errors import ModelFileError
from hybrid.shared_protocol.gguf import read_gguf
from hybrid.shared_protocol.model import load_model
from hybrid.shared_protocol.tokenizer import tokenizer_of
from hybrid.tests.support.gguf_writer import write_gguf
from hybrid.tests.support.llama_cpp import LlamaTokenizer, library_path
from hybrid.tests.support.sentencepiece import Vocabulary, metadata, vocabulary, write_sentencepiece
from hybrid.tests.support.texts import random_texts

SETTINGS = {
    "tokenizer__ggml__model": "t5",
    "tokenizer__ggml__unknown_token_id": 0,
    "tokenizer__ggml__bos_token_id": 1,
    "tokenizer__ggml__add_bos_token": True,
    "tokenizer__ggml__add_eos_token": False,
}


def scored() -> Vocabulary:
    """The scores are as good as random: what is best is no matter of length."""
    tokens, kinds, _ = vocabulary()
    return (
        tokens,
        kinds,
        [0.0 if kind in (2, 3) else -2.0 - zlib.crc32(token.encode()) % 1000 / 100 for token, kind in zip(tokens, kinds, strict=True)],
    )


@pytest.mark.skipif(library_path() is None, reason="xllamacpp, which brings llama.cpp's tokenizer, is not installed")
@pytest.mark.parametrize("space_first", [True, False])
@pytest.mark.parametrize("merge_spaces", [True, False])
def test_random_texts_have_the_ids_of_llama_cpp(tmp_path: Path, space_first: bool, merge_spaces: bool) -> None:
    settings = {**SETTINGS, "tokenizer__ggml__add_space_prefix": space_first, "tokenizer__ggml__remove_extra_whitespaces": merge_spaces}
    path = write_sentencepiece(tmp_path / "t.gguf", scored(), **settings)
    tokenizer, oracle = tokenizer_of(read_gguf(path)), LlamaTokenizer(path, path)
    for text in [*random_texts(11, 500), "a" * 500, " " * 50, "<|user|>  a <|user|>"]:
        assert tokenizer.encode(text) == oracle.encode(text, add_special=True), repr(text)
    for number in range(tokenizer.vocab_size):
        assert tokenizer.token_bytes(number) == oracle.piece(number), number
    oracle.close()


def test_text_that_spells_a_control_token_stays_text(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(read_gguf(write_sentencepiece(tmp_path / "t.gguf", scored(), **SETTINGS)))
    assert tokenizer.encode("a</s>", [(0, 5)]).count(2) == 0
    assert tokenizer.encode("a</s>").count(2) == 1


def test_another_template_makes_no_other_vocabulary(tmp_path: Path) -> None:
    plain, other = (
        load_model(write_sentencepiece(tmp_path / f"{number}.gguf", scored(), **SETTINGS, **more)).card
        for number, more in enumerate(({}, {"template": "{{ messages[0].content }}"}))
    )
    assert plain.vocabulary == other.vocabulary
    assert plain.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"tokenizer__ggml__precompiled_charsmap": [1, 2, 3]}, "precompiled_charsmap"),
        ({"tokenizer__ggml__unknown_token_id": 100_000}, "unknown_token_id"),
        ({"tokenizer__ggml__scores": [float("nan")] * len(vocabulary()[0])}, "scores' number 0"),
        ({"tokenizer__ggml__remove_extra_whitespaces": 2}, "remove_extra_whitespaces"),
    ],
)
def test_a_tokenizer_that_cannot_be_built_is_refused_by_name(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelFileError, match=named):
        tokenizer_of(read_gguf(write_gguf(tmp_path / "t.gguf", metadata(scored(), **{**SETTINGS, **change}), {})))
