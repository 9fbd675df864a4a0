"""Text of committed tokens: shown byte by byte as the cloud allows, never half a character, never taken back."""

from __future__ import annotations

import pytest
from hybrid.edge.visible_text import VisibleText
from hybrid.shared_protocol.errors import ProtocolError
from hybrid.tests.support.byte_tokenizer import ByteTokenizer

SMILE = "a😀b".encode()


def text_of(data: bytes) -> VisibleText:
    text = VisibleText(ByteTokenizer())  # type: ignore[arg-type]
    text.extend(list(data))
    return text


def test_what_is_allowed_is_shown_once() -> None:
    text = text_of(SMILE)
    assert [text.show(1, last=False), text.show(5, last=False), text.show(5, last=False), text.show(6, last=True)] == ["a", "😀", "", "b"]
    assert text.shown == "a😀b"


@pytest.mark.parametrize("length", [2, 3, 4, 7])
def test_a_cut_character_or_more_than_there_is_is_refused(length: int) -> None:
    with pytest.raises(ProtocolError):
        text_of(SMILE).show(length, last=False)


def test_what_was_shown_cannot_become_less() -> None:
    text = text_of(b"abc")
    text.show(2, last=False)
    with pytest.raises(ProtocolError):
        text.show(1, last=False)
    with pytest.raises(ProtocolError):
        text.replace(list(b"axc"))


def test_a_correction_after_what_was_shown_is_taken() -> None:
    text = text_of(b"abc")
    text.show(2, last=False)
    text.replace(list(b"abxy"))
    assert text.show(4, last=True) == "xy"


def test_half_a_character_becomes_visible_only_at_the_end() -> None:
    text = text_of(SMILE[:3])
    assert text.show(1, last=False) == "a"
    assert text.show(4, last=True) == "\ufffd"
