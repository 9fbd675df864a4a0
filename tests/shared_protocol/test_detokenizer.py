"""Incremental detokenising, against decoding the whole."""

from __future__ import annotations

import pytest
from hybrid.shared_protocol.detokenizer import Detokenizer
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.tokenizer import Tokenizer
from hypothesis import given
from hypothesis import strategies as st

FAMILY = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"


@pytest.fixture(scope="module")
def bytewise(tiny_llama: Model) -> Tokenizer:
    """In the tiny vocabulary, id 3 + b is the byte b: any byte sequence can be forced."""
    assert [tiny_llama.tokenizer.token_bytes(3 + b) for b in range(256)] == [bytes([b]) for b in range(256)]
    return tiny_llama.tokenizer


def pieces(tokenizer: Tokenizer, raw: bytes) -> list[str]:
    detokenizer = Detokenizer(tokenizer)
    return [*(detokenizer.push(3 + byte) for byte in raw), detokenizer.flush()]


@given(raw=st.binary(max_size=40))
def test_joined_pieces_are_the_whole_decoded_for_any_bytes(tiny_llama: Model, raw: bytes) -> None:
    assert "".join(pieces(tiny_llama.tokenizer, raw)) == raw.decode("utf-8", "replace")
    assert tiny_llama.tokenizer.decode([3 + byte for byte in raw]) == raw.decode("utf-8", "replace")


@given(text=st.text(max_size=20))
def test_no_piece_ever_splits_a_character(tiny_llama: Model, text: str) -> None:
    shown = pieces(tiny_llama.tokenizer, text.encode())
    assert "".join(shown) == text
    assert text.count("\ufffd") == "".join(shown).count("\ufffd")


def test_an_emoji_split_over_tokens_comes_as_one_piece(bytewise: Tokenizer) -> None:
    assert pieces(bytewise, "😸".encode()) == ["", "", "", "😸", ""]
    assert [piece for piece in pieces(bytewise, FAMILY.encode()) if piece] == list(FAMILY)
    assert [piece for piece in pieces(bytewise, "e\u0301".encode()) if piece] == ["e", "\u0301"]


def test_half_a_character_at_the_end_becomes_a_replacement_only_at_the_flush(bytewise: Tokenizer) -> None:
    assert pieces(bytewise, b"\xf0\x9f") == ["", "", "\ufffd"]


def test_bytes_that_can_no_longer_be_completed_are_replaced_at_once(bytewise: Tokenizer) -> None:
    assert pieces(bytewise, b"\xf0\x9fA") == ["", "", "\ufffdA", ""]


def test_control_tokens_add_no_text(smollm2: Model) -> None:
    detokenizer = Detokenizer(smollm2.tokenizer)
    ids = smollm2.tokenizer.encode("<|im_start|>hi<|im_end|>")
    assert "".join(detokenizer.push(number) for number in ids) + detokenizer.flush() == "hi"
