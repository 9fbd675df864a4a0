"""Stop strings, against a reference that looks at every prefix of the whole text."""

from __future__ import annotations

from hybrid.shared_protocol.stop import StopChecker
from hypothesis import given
from hypothesis import strategies as st

LETTERS = st.text("ab\n", max_size=24)
STOPS = st.lists(st.text("ab\n", min_size=1, max_size=5), max_size=4)


def reference(text: str, stops: list[str]) -> tuple[str, str | None]:
    for end in range(1, len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            longest = max(complete, key=len)
            return text[: end - len(longest)], longest
    return text, None


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    return [*pieces, text[at:]]


@given(text=LETTERS, stops=STOPS, sizes=st.lists(st.integers(0, 7), max_size=12))
def test_any_chunking_shows_what_the_reference_shows(text: str, stops: list[str], sizes: list[int]) -> None:
    checker = StopChecker(stops)
    shown = ""
    for piece in cut(text, sizes):
        part, stopped = checker.push(piece)
        shown += part
        assert stopped == checker.stopped
    shown += checker.flush()
    expected, stop = reference(text, stops)
    assert (shown, checker.stopped) == (expected, stop)


@given(text=LETTERS, stops=STOPS)
def test_only_what_may_become_a_stop_string_is_held_back(text: str, stops: list[str]) -> None:
    checker = StopChecker(stops)
    shown = "".join(checker.push(character)[0] for character in text)
    if checker.stopped is None:
        starts = [stop[:length] for stop in stops for length in range(1, len(stop))]
        held = max((start for start in starts if text.endswith(start)), key=len, default="")
        assert shown + held == text


def test_a_stop_string_split_over_three_pieces_never_reaches_the_reader() -> None:
    checker = StopChecker(("O P Q",))
    assert [checker.push(piece) for piece in ("A B C ", "O P", " ", "Q R")] == [("A B C ", None), ("", None), ("", None), ("", "O P Q")]
    assert checker.push("more") == ("", "O P Q")
    assert checker.flush() == ""


def test_the_end_of_a_text_that_looked_like_a_stop_string_is_shown_after_all() -> None:
    checker = StopChecker(("\n\n",))
    assert checker.push("?\n") == ("?", None)
    assert checker.flush() == "\n"


def test_the_stop_string_that_is_complete_first_wins_and_the_longer_of_two() -> None:
    assert StopChecker(("abcdef", "cd")).push("abcdef") == ("ab", "cd")
    assert StopChecker(("d", "bcd")).push("abcdef") == ("a", "bcd")
