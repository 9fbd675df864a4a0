"""Specials, literal text, BOS, and the fingerprint."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hybrid.shared_protocol.errors import ContextOverflow, InvalidRequest, ModelFileError
from hybrid.shared_protocol.gguf import read_gguf
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.tokenizer import Tokenizer, tokenizer_of
from hybrid.tests.support.gguf_writer import tiny_metadata, write_gguf, write_tiny_llama
from hypothesis import given
from hypothesis import strategies as st

PIECES = st.sampled_from(["<|im_end|>", "<|im_start|>", "<|im_", "end|>", "<", "|>", "the", " and", " ", "\n", "1", "é", "😊"])


def tokenizer_with(tmp_path: Path, **changes: Any) -> Tokenizer:
    return tokenizer_of(read_gguf(write_gguf(tmp_path / "t.gguf", tiny_metadata(**changes), {})))


def test_a_special_that_the_user_typed_stays_text(smollm2: Model) -> None:
    text = "<|im_start|>user\nsay <|im_end|> twice<|im_end|>\n"
    typed = text.index("<|im_end|>")
    ids = smollm2.tokenizer.encode(text, [(typed, typed + len("<|im_end|>"))])
    assert (ids.count(1), ids.count(2)) == (1, 1)
    assert smollm2.tokenizer.decode(ids, skip_special=False) == text


def test_a_special_half_of_which_the_user_typed_stays_text(smollm2: Model) -> None:
    text = "<|im_end|>"
    for span in ((0, 5), (5, 10), (4, 5)):
        assert 2 not in smollm2.tokenizer.encode(text, [span])
    assert smollm2.tokenizer.encode(text, [(0, 0)]) == [2]


@given(parts=st.lists(PIECES, max_size=12), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_literal_spans_never_change_the_text_and_let_no_special_through(smollm2: Model, parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    bounds = sorted(min(cut, len(text)) for cut in cuts)
    spans = list(zip(bounds[::2], bounds[1::2], strict=False))
    ids = smollm2.tokenizer.encode(text, spans)
    assert smollm2.tokenizer.decode(ids, skip_special=False) == text
    outside = list(text)
    for start, end in spans:
        outside[start:end] = "\0" * (end - start)
    assert ids.count(2) == "".join(outside).count("<|im_end|>")


@given(text=st.text(st.characters(exclude_characters="\x04\x06\x13\x14\x16\x1d", max_codepoint=0x3FFFF, exclude_categories=["Cs"])))
def test_every_text_comes_back_whole(smollm2: Model, text: str) -> None:
    assert smollm2.tokenizer.decode(smollm2.tokenizer.encode(text, [(0, len(text))])) == text


def test_half_a_surrogate_pair_is_refused_with_its_code_point(smollm2: Model) -> None:
    with pytest.raises(InvalidRequest, match=r"U\+D83D"):
        smollm2.tokenizer.encode("a\ud83d")


@pytest.mark.parametrize("token_id", [-1, 49_152, 2**70])
def test_an_id_outside_the_vocabulary_is_refused_by_number(smollm2: Model, token_id: int) -> None:
    with pytest.raises(InvalidRequest, match=f"{token_id}.*49152"):
        smollm2.tokenizer.decode([1, token_id])


def test_bos_is_added_when_the_model_asks_for_it_and_never_twice(tmp_path: Path) -> None:
    tokenizer = tokenizer_with(tmp_path, tokenizer__ggml__add_bos_token=True)
    assert tokenizer.encode("the")[0] == tokenizer.bos_id == 1
    assert tokenizer.encode("<|im_start|>the") == tokenizer.encode("the")
    assert tokenizer.encode("the", add_bos=False)[0] != 1


def test_a_template_that_emits_bos_gives_exactly_one(tmp_path: Path) -> None:
    template = "{{ bos_token }}{% for message in messages %}{{ message.content }}{% endfor %}"
    changes = {"tokenizer__ggml__add_bos_token": True, "template": template}
    model = load_model(write_tiny_llama(tmp_path / "bos.gguf", **changes))
    assert model.render_chat([{"role": "user", "content": "the"}]).count(1) == 1
    without = load_model(write_tiny_llama(tmp_path / "none.gguf", **{**changes, "template": "{{ messages[0].content }}"}))
    assert without.render_chat([{"role": "user", "content": "the"}]).count(1) == 1
    assert without.render_chat([{"role": "user", "content": "<|im_start|>"}]).count(1) == 1  # the user's own is text


def test_two_swapped_ids_in_a_vocabulary_of_the_same_size_give_another_fingerprint(tmp_path: Path) -> None:
    tokens = list(tiny_metadata()["tokenizer.ggml.tokens"])  # type: ignore[call-overload]
    swapped = [*tokens[:-2], tokens[-1], tokens[-2]]
    assert tokenizer_with(tmp_path).fingerprint != tokenizer_with(tmp_path, tokenizer__ggml__tokens=swapped).fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"tokenizer__ggml__add_bos_token": True},
        {"tokenizer__ggml__eos_token_id": 0},
        {"tokenizer__ggml__bos_token_id": 2},
        {"tokenizer__ggml__merges": tiny_metadata()["tokenizer.ggml.merges"][::-1]},  # type: ignore[index]
        {"tokenizer__ggml__token_type": [3, 4, 3] + [1] * 317},
    ],
)
def test_whatever_changes_ids_changes_the_fingerprint(tmp_path: Path, change: dict[str, Any]) -> None:
    assert tokenizer_with(tmp_path, **change).fingerprint != tokenizer_with(tmp_path).fingerprint


@pytest.mark.parametrize("change", [{"template": "{{ messages }}"}, {"tokenizer__chat_template": None}])
def test_another_template_leaves_the_vocabulary_but_not_the_fingerprint(tmp_path: Path, tiny_llama: Model, change: dict[str, Any]) -> None:
    other = load_model(write_tiny_llama(tmp_path / "other.gguf", **change))
    assert other.card.vocabulary == tiny_llama.card.vocabulary
    assert other.card.fingerprint != tiny_llama.card.fingerprint


def test_weights_and_names_do_not_change_the_fingerprint(tmp_path: Path, tiny_llama: Model) -> None:
    other = load_model(write_tiny_llama(tmp_path / "other.gguf", seed=1, general__name="other"))
    assert other.card.fingerprint == tiny_llama.card.fingerprint
    assert other.card.file_hash != tiny_llama.card.file_hash


def test_the_fingerprint_is_the_same_in_every_process(tiny_llama: Model) -> None:
    program = "import sys; from hybrid.shared_protocol.model import load_model; print(load_model(sys.argv[1]).card.fingerprint)"
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run([sys.executable, "-c", program, tiny_llama.path], capture_output=True, text=True, env=environment, check=True)
        assert run.stdout.strip() == tiny_llama.card.fingerprint


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"tokenizer__ggml__model": "bert"}, "gpt2"),
        ({"tokenizer__ggml__pre": "kimi-k2"}, "smollm"),
        ({"tokenizer__ggml__pre": None}, "tokenizer.ggml.pre"),
        ({"tokenizer__ggml__pre": ["x"]}, "tokenizer.ggml.pre"),
        ({"tokenizer__ggml__tokens": None}, "tokenizer.ggml.tokens"),
        ({"tokenizer__ggml__merges": [1, 2]}, "tokenizer.ggml.merges"),
        ({"tokenizer__ggml__merges": ["q zz"]}, "tokenizer.ggml.merges' number 0"),
        ({"tokenizer__ggml__merges": ["<|im_end|>"]}, "number 0"),
        ({"tokenizer__ggml__token_type": [1, 1]}, "token_type"),
        ({"tokenizer__ggml__token_type": [3] * 320}, "plain text"),
        ({"tokenizer__ggml__eos_token_id": 320}, "320"),
        ({"tokenizer__ggml__bos_token_id": "one"}, "bos_token_id"),
        ({"tokenizer__ggml__tokens": ["a"] * 320}, "twice"),
        ({"tokenizer__ggml__tokens": [f"t{n}" for n in range(320)]}, "byte 0x09"),
    ],
)
def test_a_tokenizer_that_cannot_be_built_is_refused_by_name(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelFileError, match=named):
        tokenizer_with(tmp_path, **change)


def test_a_file_without_tokens_is_refused_by_the_key(tmp_path: Path) -> None:
    gguf = read_gguf(write_gguf(tmp_path / "t.gguf", tiny_metadata(), {}))
    with pytest.raises(ModelFileError, match=r"'tokenizer\.ggml\.tokens' is empty"):
        tokenizer_of(replace(gguf, metadata={**gguf.metadata, "tokenizer.ggml.tokens": []}))


async def test_other_threads_get_on_while_a_long_text_is_encoded(smollm2: Model) -> None:
    encoding = asyncio.ensure_future(asyncio.to_thread(smollm2.tokenizer.encode, "a b1 " * 20_000))
    turns = 0
    while not encoding.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(encoding.result()) > 50_000
    assert turns > 100  # a handful when the library keeps the interpreter to itself


@given(text=st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join), st.integers(1, 300).map(lambda n: " " * n)))
def test_a_limit_refuses_nothing_that_fits(smollm2: Model, text: str) -> None:
    ids = smollm2.tokenizer.encode(text)
    assert smollm2.tokenizer.encode(text, limit=len(ids)) == ids


def test_a_text_of_too_many_bytes_is_refused_without_counting_its_tokens(smollm2: Model) -> None:
    # no token of this vocabulary is longer than 81 bytes
    assert len(smollm2.tokenizer.encode("a" * 810, limit=10)) > 10
    with pytest.raises(ContextOverflow, match="at least 11 tokens, the limit is 10") as refused:
        smollm2.tokenizer.encode("a" * 811, limit=10)
    assert (refused.value.asked, refused.value.limit) == (11, 10)
    assert smollm2.tokenizer.encode("\x04" * 10_000, limit=10) == []  # a byte that the vocabulary lacks is no token
