"""Redacting and restoring is the identity, for any text, whatever is found in it, and however what comes back is cut."""

from __future__ import annotations

import unicodedata

from hybrid.router.detect.finding import Finding, resolve
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import find
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.redact.restore import restored
from hybrid.tests.support.redacting import mapping, redacted, restored_in
from hypothesis import given
from hypothesis import strategies as st

POLICY = Policy.default()
ATOMS = (
    *"ab1 \n\t[]<>()*_-`\\\"'=/.,@",
    *("https://", "//", "www.", "HTTP:", "](", "\n\n", "EMAIL", "email_1_", "[EMAIL_1_", "[EMAIL_1_bcdfghjk]"),
    *("\u2011", "\u200b", "é", "e\u0301"),
    *("jane@example.com", "bob@example.com", "+49 30 1234567", "4111 1111 1111 1111", "81.2.69.142", "漢字", "😀", "\u2028", "ſ", "K"),
)
texts = st.lists(st.one_of(st.sampled_from(ATOMS), st.text(st.characters(exclude_categories=["Cs"]), max_size=4)), max_size=24).map("".join)
places = st.tuples(st.integers(0, 60), st.integers(1, 12), st.sampled_from(["email", "us_ssn", "ip"]))


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[left:right] for left, right in zip([0, *places], [*places, len(text)], strict=True)]


def same(came: str, text: str) -> bool:
    """Values that are equal to Unicode have one placeholder, and come back as the first of them was written."""
    composed = unicodedata.normalize("NFC", text)
    return came == text if composed == text else unicodedata.normalize("NFC", came) == composed


@given(texts, st.data())
def test_what_the_detectors_find_comes_back_from_any_chunks(text: str, data: st.DataObject) -> None:
    into = mapping()
    sent = redacted(text, into, lambda part: find(part, POLICY))
    assert same("".join(restored_in(data.draw(cut(sent)), into)), text)


@given(texts, st.lists(places, max_size=6), st.data())
def test_so_does_anything_that_could_be_found(text: str, some: list[tuple[int, int, str]], data: st.DataObject) -> None:
    found = resolve(Finding(kind, at, min(at + length, len(text))) for at, length, kind in some if at < len(text))
    into = mapping()
    sent = redacted(text, into, lambda part: found if part == text else [])
    assert same("".join(restored_in(data.draw(cut(sent)), into)), text)


@given(st.lists(texts, min_size=1, max_size=4))
def test_so_does_every_turn_of_a_conversation_that_repeats_what_was_sent(turns: list[str]) -> None:
    """The second time a text may hold the first one's placeholders, as a user who has copied them would send it."""
    into = mapping()
    for text in [*turns, *(redacted(turn, mapping()) for turn in turns)]:
        sent = redacted(text, into)
        assert same(restored(sent, into.values()), text)
        assert redacted(text, into) == sent


@given(texts, st.data())
def test_a_text_with_nothing_to_fill_in_is_never_held_back(text: str, data: st.DataObject) -> None:
    chunks = data.draw(cut(text))
    assert restored_in(chunks, RedactionMapping()) == [*chunks, ""]
