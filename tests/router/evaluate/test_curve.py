"""The figures of the cost-quality curve: by hand, against loops, and against what is known of the public sets."""

from pathlib import Path

import numpy as np
import pytest
from hybrid.router.evaluate.curve import Curves, apgr, cpt, pgr
from hybrid.router.evaluate.figure import Floats
from hybrid.router.evaluate.folds import fold_of, held_out
from hybrid.router.evaluate.hull import aiq, hulls
from hybrid.router.evaluate.outcomes import read_outcomes
from hybrid.router.evaluate.scorers import Length, Oracle
from hybrid.router.evaluate.tfidf_ridge import TfidfRidge
from hybrid.tests.router.evaluate import slow
from hybrid.tests.support.routing_data import GSM8K, MIXED, Known
from hypothesis import given
from hypothesis import strategies as st

ONES = np.ones((1, 4))
# four prompts: the strong model gains 1, 1, 0 and loses 1
WEAK, STRONG = np.array([0.0, 0, 1, 1]), np.array([1.0, 1, 1, 0])


def points(scores: list[float], weights: Floats = ONES) -> tuple[Floats, Floats]:
    return Curves(np.array(scores), WEAK, STRONG).points(weights)


def test_the_curve_by_hand() -> None:
    share, quality = points([4, 3, 2, 1])
    assert share.tolist() == [[0, 0.25, 0.5, 0.75, 1]] and quality.tolist() == [[0.5, 0.75, 1, 1, 0.75]]
    assert pgr(quality).tolist() == [[0, 1, 2, 2, 1]]  # above 1: calling the strong model for the last prompt makes it worse
    assert apgr(share, quality).tolist() == [(0.5 + 1.5 + 2 + 1.5) / 4]
    assert cpt(share, quality, 0.5).tolist() == [0.25] and cpt(share, quality, 1).tolist() == [0.25]


def test_equal_scores_move_together() -> None:
    for scores in ([1, 1, 1, 1], [2, 2, 1, 1]):
        share, quality = points(scores)
        again, same = Curves(np.array(scores[::-1]), WEAK[::-1], STRONG[::-1]).points(ONES)
        assert share.tolist() == again.tolist() and quality.tolist() == same.tolist()
    assert apgr(*points([1, 1, 1, 1])).tolist() == [0.5]  # nothing known: as good as chance
    assert cpt(*points([1, 1, 1, 1]), 0.5).tolist() == [1]  # no threshold reaches it earlier


def test_a_weight_is_as_many_copies() -> None:
    share, quality = points([4, 3, 2, 1], np.array([[2.0, 0, 1, 3]]))
    copied = Curves(np.array([4.0, 4, 2, 1, 1, 1]), np.array([0.0, 0, 1, 1, 1, 1]), np.array([1.0, 1, 1, 0, 0, 0]))
    other_share, other_quality = copied.points(np.ones((1, 6)))
    assert share[0, [0, 1, 3, 4]].tolist() == other_share[0].tolist() and share[0, 2] == share[0, 1]
    np.testing.assert_allclose(quality[0, [0, 1, 3, 4]], other_quality[0])


@pytest.mark.parametrize("strong", [WEAK, WEAK - 0.25 * (WEAK > 0), WEAK + 0.004 * (WEAK == 0)])
def test_without_a_gap_there_is_no_share_of_it(strong: Floats) -> None:
    share, quality = Curves(np.array([4.0, 3, 2, 1]), WEAK, strong).points(ONES)
    assert np.isnan(apgr(share, quality)).all() and np.isnan(cpt(share, quality, 0.5)).all()


def test_a_score_that_is_no_number_has_no_place() -> None:
    with pytest.raises(ValueError, match="finite"):
        points([1, 2, 3, float("nan")])


def test_the_hull_by_hand() -> None:
    x, y = np.array([[0, 0.25, 0.5, 0.75, 1]]), np.array([[0.5, 0.6, 1, 0.9, 0.75]])
    corners, count = hulls(x, y)
    assert corners[0, : count[0]].tolist() == [0, 2, 3, 4]  # .6 lies below the line from .5 to 1
    assert aiq(x, y).tolist() == [0.5 * 0.75 + 0.5 * 1]  # after the peak it stays flat
    assert np.isnan(aiq(np.zeros((1, 3)), np.ones((1, 3)))).all()


rows = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12)


@given(rows, st.integers(0, 3))
def test_the_figures_are_those_of_the_definitions(rows: list[tuple[int, int, int]], lead: int) -> None:
    scores = [float(row[0]) for row in rows]
    weak, strong = [row[1] / 8 for row in rows], [min(1.0, row[2] / 8 + lead / 8) for row in rows]
    expected = slow.curve(scores, weak, strong)
    share, quality = Curves(np.array(scores), np.array(weak), np.array(strong)).points(np.ones((1, len(rows))))
    np.testing.assert_allclose(np.column_stack([share[0], quality[0]]), expected, atol=1e-12)
    assert aiq(share, quality)[0] == pytest.approx(slow.aiq(expected, 500), abs=2e-3)
    if expected[-1][1] - expected[0][1] > 0.006:
        assert apgr(share, quality)[0] == pytest.approx(slow.apgr(expected))
        for level in (0.5, 0.8):
            assert cpt(share, quality, level)[0] == pytest.approx(slow.cpt(expected, level))
    else:
        assert np.isnan(apgr(share, quality)[0])


@given(st.lists(st.lists(st.integers(0, 9), min_size=6, max_size=6), min_size=1, max_size=5))
def test_many_hulls_at_once_are_each_its_own(heights: list[list[int]]) -> None:
    y = np.array(heights, dtype=np.float64)
    x = np.tile([0.0, 0.1, 0.1, 0.4, 0.9, 1.0], (len(y), 1))
    together = aiq(x, y)
    for number in range(len(y)):
        alone = list(zip(x[number].tolist(), y[number].tolist(), strict=True))
        assert together[number] == pytest.approx(slow.aiq(alone, 500), abs=0.05) == aiq(x[number : number + 1], y[number : number + 1])[0]


@pytest.mark.parametrize("known", [GSM8K, MIXED], ids=lambda known: known.file)
def test_the_baselines_reach_what_was_computed_elsewhere(known: Known, gsm8k: Path, mixed: Path) -> None:
    outcomes = read_outcomes(gsm8k if known is GSM8K else mixed)
    weak, strong = np.array([row.weak for row in outcomes]), np.array([row.strong for row in outcomes])
    assert weak.mean() == pytest.approx(known.weak, abs=5e-4) and strong.mean() == pytest.approx(known.strong, abs=5e-4)

    def figure(scores: Floats) -> float:
        return float(apgr(*Curves(scores, weak, strong).points(np.ones((1, len(outcomes)))))[0])

    prompts = [row.prompt for row in outcomes]
    assert figure(Length().score(prompts)) == pytest.approx(known.length, abs=1e-3)
    assert figure(Oracle(outcomes).score(prompts)) == pytest.approx(known.oracle, abs=1e-3)
    ridge = figure(held_out(TfidfRidge, outcomes, fold_of([row.group for row in outcomes], 5)).scores)
    assert known.ridge[0] <= ridge <= known.ridge[1]
