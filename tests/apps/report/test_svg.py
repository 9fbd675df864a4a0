"""A frame puts numbers where they belong, and ticks are round."""

import pytest
from hybrid.apps.report.svg import BOTTOM, LEFT, RIGHT, TOP, Frame, text, thinned, ticks
from hypothesis import given
from hypothesis import strategies as st


def test_the_corners_of_a_frame() -> None:
    frame = Frame(0, 2, 10, 20, width=200, height=100)
    assert (frame.x(0), frame.x(2)) == (LEFT, 200 - RIGHT) and (frame.y(10), frame.y(20)) == (100 - BOTTOM, TOP)
    assert frame.x(1) == (LEFT + 200 - RIGHT) / 2


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (0.56, 0.62, [0.56, 0.57, 0.58, 0.59, 0.6, 0.61, 0.62]), (-1, 1, [-1, -0.5, 0, 0.5, 1])],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e6))  # what a report draws: shares, scores, counts
def test_ticks_lie_inside_and_are_a_few(low: float, width: float) -> None:
    found = ticks(low, low + width)
    assert 1 <= len(found) <= 13 and all(low - 1e-6 * width <= tick <= low + 1.000001 * width for tick in found)


def test_thinning_keeps_both_ends() -> None:
    xs, ys = thinned(list(range(1000)), [x * x for x in range(1000)], most=10)
    assert len(xs) == 10 and (xs[0], xs[-1]) == (0, 999) and ys == [x * x for x in xs]
    assert thinned([1, 2], [3, 4]) == ([1, 2], [3, 4])


def test_words_are_escaped() -> None:
    assert "<b>" not in text(0, 0, "<b>") and "&lt;b&gt;" in text(0, 0, "<b>")
    assert "<script>" not in Frame(0, 1, 0, 1).draw('"><script>', [])
    assert "<script>" not in Frame(0, 1, 0, 1).dot(0, 0, 1, "<script>")
