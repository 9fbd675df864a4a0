"""A promised error rate holds for what was not seen, or is not promised."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hybrid.router.confidence.threshold import GRID, STARTS, binomial_cdf, needed, promise_by_halves, promised_threshold, upper_bound
from hybrid.shared_protocol.errors import CannotPromise, InvalidRequest


@pytest.mark.parametrize(("k", "n", "p"), [(0, 1, 0.5), (3, 10, 0.25), (7, 30, 0.125), (29, 30, 0.75), (30, 30, 0.1)])
def test_the_binomial_is_exact(k: int, n: int, p: float) -> None:
    exact = sum(math.comb(n, i) * Fraction(p) ** i * (1 - Fraction(p)) ** (n - i) for i in range(k + 1))
    assert binomial_cdf(k, n, p) == pytest.approx(float(exact), rel=1e-10)


def test_the_upper_bound_is_clopper_and_pearson_s() -> None:
    assert upper_bound(0, 10, 0.05) == pytest.approx(1 - 0.05 ** (1 / 10), abs=2e-6)  # the closed form without errors
    assert upper_bound(10, 10, 0.05) == 1
    assert upper_bound(3, 20, 0.05) == pytest.approx(0.3437, abs=1e-4)  # a table's


def test_the_least_number_of_outcomes_is_the_least_at_which_a_test_can_reject() -> None:
    least = needed(0.1, 0.05)
    assert least == 29
    assert binomial_cdf(0, least, 0.1) <= 0.05 < binomial_cdf(0, least - 1, 0.1)


def test_the_lowest_threshold_that_passes_is_chosen() -> None:
    scores = [0.9] * 100 + [0.6] * 100 + [0.3] * 100
    wrong = [False] * 100 + [False] * 95 + [True] * 5 + [True] * 100
    found = promised_threshold(scores, wrong, error_rate=0.1)
    assert (found.kept, found.wrong, found.n) == (200, 5, 300)
    assert 0.3 < found.threshold <= 0.35 + 1e-9


def draw(source: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores in 0..1, wrong with the probability 1 - score: what is kept from t on is wrong with the probability (1 - t) / 2."""
    scores = source.uniform(size=n)
    return scores, source.uniform(size=n) > scores


def test_a_promise_is_broken_no_more_often_than_was_said() -> None:
    source, broken, promises = np.random.default_rng(4), 0, 0
    for _ in range(200):
        scores, wrong = draw(source, 500)
        try:
            found = promised_threshold(scores.tolist(), wrong.tolist(), error_rate=0.2, delta=0.1)
        except CannotPromise:
            continue
        promises += 1
        broken += (1 - found.threshold) / 2 > 0.2 + 1e-12
    assert promises > 150
    assert broken / 200 <= 0.1 + 2 * math.sqrt(0.1 * 0.9 / 200)


def test_halves_keep_their_promise_too_and_need_no_grid() -> None:
    source, broken, promises = np.random.default_rng(6), 0, 0
    for _ in range(200):
        scores, wrong = draw(source, 600)
        tested = source.uniform(size=600) < 0.5
        try:
            found = promise_by_halves(scores.tolist(), wrong.tolist(), tested.tolist(), error_rate=0.2, delta=0.1)
        except CannotPromise:
            continue
        promises += 1
        broken += (1 - found.threshold) / 2 > 0.2 + 1e-12
        assert found.n == tested.sum()
    assert promises > 100
    assert broken / 200 <= 0.1 + 2 * math.sqrt(0.1 * 0.9 / 200)


@pytest.mark.parametrize("tested", [[True] * 4, [False] * 4, [True, False]])
def test_both_halves_must_hold_something(tested: list[bool]) -> None:
    with pytest.raises(InvalidRequest, match="half"):
        promise_by_halves([0.1, 0.2, 0.3, 0.4], [False] * 4, tested, error_rate=0.2)


def test_choosing_what_looks_right_breaks_the_same_promise_far_more_often() -> None:
    """What the test above would say of a threshold without a bound: that it can fail."""
    source, broken = np.random.default_rng(4), 0
    for _ in range(200):
        scores, wrong = draw(source, 150)
        looks_right = min((t for t in GRID if (kept := wrong[scores >= t]).size and kept.mean() <= 0.2), default=1.0)
        broken += (1 - looks_right) / 2 > 0.2 + 1e-12
    assert broken / 200 > 0.3


def test_too_few_outcomes_are_said_to_be_too_few() -> None:
    with pytest.raises(CannotPromise, match=rf"from 5 outcomes: at least {needed(0.05, 0.1 / STARTS)} right") as refused:
        promised_threshold([0.9] * 5, [False] * 5, error_rate=0.05)
    assert refused.value.exit_code == 6


def test_too_many_errors_are_said_to_be_too_many() -> None:
    with pytest.raises(CannotPromise, match=r"at any threshold: the best one bounds the error rate by [5-9]\d\.\d%"):
        promised_threshold([0.9] * 200, [True, False] * 100, error_rate=0.1)


@pytest.mark.parametrize(
    "options", [{"error_rate": 0.0}, {"error_rate": 1.0}, {"error_rate": 0.1, "delta": 0.0}, {"error_rate": 0.1, "grid": ()}]
)
def test_numbers_that_promise_nothing_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest):
        promised_threshold([0.5] * 50, [False] * 50, **options)


def test_scores_and_outcomes_must_be_as_many() -> None:
    with pytest.raises(InvalidRequest, match="2 scores came with 1"):
        promised_threshold([0.5, 0.6], [False], error_rate=0.1)
    with pytest.raises(InvalidRequest, match="finite"):
        promised_threshold([math.nan], [False], error_rate=0.1)
