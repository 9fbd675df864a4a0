"""Maps from a score to a probability, held to definitions that share no code with them."""

import math
import random
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from hybrid.router.calibration import Calibration, Isotonic, Logistic, Temperature, fit_isotonic, fit_logistic, fit_temperature, sigmoid
from hybrid.shared_protocol.errors import InvalidRequest
from hypothesis import given
from hypothesis import strategies as st

ROWS = st.lists(st.tuples(st.integers(-5, 5).map(float), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=25)


def min_max_isotonic(scores: Sequence[float], outcomes: Sequence[float]) -> dict[float, float]:
    """The textbook formula: at x the largest, over starts up to x, of the smallest mean of what begins there and ends at x or later."""
    order = sorted(set(scores))
    means = {
        (a, b): float(np.mean([y for x, y in zip(scores, outcomes, strict=True) if order[a] <= x <= order[b]]))
        for a in range(len(order))
        for b in range(a, len(order))
    }
    return {x: max(min(means[a, b] for b in range(at, len(order))) for a in range(at + 1)) for at, x in enumerate(order)}


@given(ROWS)
def test_isotonic_is_the_min_max_formula(rows: list[tuple[float, float]]) -> None:
    scores, outcomes = zip(*rows, strict=True)
    found = fit_isotonic(scores, outcomes)
    for score, value in min_max_isotonic(scores, outcomes).items():
        assert found(score) == pytest.approx(value, abs=1e-12)


def test_isotonic_is_linear_between_its_knots_and_flat_beyond_them() -> None:
    found = Isotonic((0.0, 1.0, 3.0), (0.2, 0.4, 0.8))
    assert [found(x) for x in (-9.0, 0.0, 0.5, 2.0, 3.0, 9.0)] == pytest.approx([0.2, 0.2, 0.3, 0.6, 0.8, 0.8])


@given(ROWS, st.lists(st.floats(-6, 6), min_size=1, max_size=10))
def test_an_array_gets_what_each_number_gets(rows: list[tuple[float, float]], at: list[float]) -> None:
    found = fit_isotonic(*zip(*rows, strict=True))
    assert found.many(np.array(at)) == pytest.approx([found(x) for x in at])


def test_a_weight_is_as_good_as_so_many_equal_outcomes() -> None:
    scores, outcomes = [1.0, 2.0, 3.0], [1.0, 0.0, 1.0]
    assert fit_isotonic(scores, outcomes, [1, 3, 2]) == fit_isotonic([1, 2, 2, 2, 3, 3], [1, 0, 0, 0, 1, 1])


def drawn(law: Callable[[float], float], number: int = 4000) -> tuple[list[float], list[float]]:
    """Scores, and outcomes that are right with the probability that `law` gives."""
    source = random.Random(7)
    scores = [source.uniform(-2, 3) for _ in range(number)]
    return scores, [float(source.random() < law(score)) for score in scores]


def test_logistic_finds_the_law_that_outcomes_were_drawn_by() -> None:
    found = fit_logistic(*drawn(lambda x: sigmoid(1.5 * x - 1)))
    assert (found.slope, found.intercept) == pytest.approx((1.5, -1), abs=0.15)


def test_logistic_shows_a_signal_that_predicts_the_opposite() -> None:
    assert fit_logistic(*drawn(lambda x: sigmoid(-x))).slope < -0.8


@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_scores_that_separate_and_outcomes_that_are_all_alike_give_finite_maps(outcome: float) -> None:
    apart = fit_logistic([-1.0, -2.0, 1.0, 2.0], [0, 0, 1, 1])
    alike = fit_logistic([-1.0, -2.0, 1.0, 2.0], [outcome] * 4)
    same = fit_logistic([3.0] * 4, [outcome] * 4)
    assert 0.02 < apart(-2) < 0.5 < apart(2) < 0.98
    assert alike(0) == pytest.approx(5 / 6 if outcome else 1 / 6, abs=0.01) == same(3.0)


def test_temperature_undoes_overconfidence_and_keeps_the_order() -> None:
    odds, outcomes = drawn(lambda x: sigmoid(x / 2))
    found = fit_temperature([sigmoid(x) for x in odds], outcomes)
    assert found.t == pytest.approx(2, abs=0.2)
    assert found(0.2) < found(0.5) == 0.5 < found(0.9) < 0.9


def test_temperature_stays_finite_where_no_temperature_is_best() -> None:
    assert fit_temperature([0.9, 0.8, 0.1], [1, 1, 0]).t == pytest.approx(1 / 20, abs=0.001)
    assert fit_temperature([0.9, 0.1], [0, 1]).t == pytest.approx(20, abs=0.01)


@pytest.mark.parametrize("fit", [fit_isotonic, fit_logistic, fit_temperature])
@pytest.mark.parametrize(("scores", "outcomes"), [([], []), ([0.5], [0, 1]), ([math.nan], [1]), ([math.inf], [1]), ([0.5], [1.5])])
def test_numbers_that_are_none_are_refused(
    fit: Callable[[Sequence[float], Sequence[float]], Calibration], scores: list[float], outcomes: list[float]
) -> None:
    with pytest.raises(InvalidRequest):
        fit(scores, outcomes)


@pytest.mark.parametrize("found", [Isotonic((0.0, 1.0), (0.1, 0.9)), Logistic(2.0, -1.0), Temperature(1.5)])
def test_a_map_is_plain_json_and_comes_back_the_same(found: Calibration) -> None:
    assert msgspec.json.decode(msgspec.json.encode(found), type=Calibration) == found


@pytest.mark.parametrize(
    "values", [((0.0, 1.0), (0.9, 0.1)), ((1.0, 0.0), (0.1, 0.9)), ((0.0,), (1.5,)), ((), ()), ((math.nan, 1.0), (0.1, 0.2))]
)
def test_a_map_from_a_file_that_is_not_monotone_is_refused(values: tuple[tuple[float, ...], tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="map"):
        Isotonic(*values)
