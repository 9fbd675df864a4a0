"""ECE, Brier score, AUROC and risk-coverage: by hand and against loops."""

import numpy as np
import pytest
from hybrid.router.evaluate.failures import Failures
from hybrid.router.evaluate.reliability import Bin, Reliability, equal_mass
from hybrid.tests.router.evaluate import slow
from hypothesis import given
from hypothesis import strategies as st


def test_ece_and_brier_by_hand() -> None:
    predicted, outcome = np.array([0.9, 0.1, 0.8, 0.2]), np.array([1.0, 0, 0, 0])
    found = Reliability(predicted, outcome, bins=2)
    assert found.bins() == [Bin(2, pytest.approx(0.15), 0.0), Bin(2, pytest.approx(0.85), 0.5)]
    ones = np.ones((1, 4))
    assert found.ece(ones)[0] == pytest.approx((0.15 + 0.35) / 2)
    assert found.brier(ones)[0] == pytest.approx((0.01 + 0.01 + 0.64 + 0.04) / 4)
    assert found.brier(np.array([[0.0, 0, 3, 1]]))[0] == pytest.approx((3 * 0.64 + 0.04) / 4)


def test_a_forecast_that_is_right_on_average_has_no_calibration_error() -> None:
    assert Reliability(np.full(10, 0.3), np.array([1.0] * 3 + [0.0] * 7)).ece(np.ones((1, 10)))[0] == pytest.approx(0)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 10))
def test_bins_hold_equal_numbers_and_part_no_equals(values: list[int], bins: int) -> None:
    found = equal_mass(np.array(values, dtype=np.float64), bins)
    by_value = dict(zip(values, found.tolist(), strict=True))
    assert [by_value[value] for value in values] == found.tolist()
    ascending = [by_value[value] for value in sorted(by_value)]
    assert ascending == sorted(ascending) and 0 <= min(ascending) <= max(ascending) < bins
    distinct = equal_mass(np.arange(50.0), bins)
    assert np.ptp(np.bincount(distinct, minlength=bins)) <= 1


def test_auroc_and_risk_by_hand() -> None:
    """The two failures score 3 and 1, the successes 2 and 1: three pairs of four are won, one of them by half."""
    found = Failures(np.array([3.0, 2, 1, 1]), np.array([0.0, 1, 0, 1]))
    ones = np.ones((1, 4))
    assert found.auroc(ones)[0] == (1 + 1 + 0 + 0.5) / 4
    coverage, risk = found.risk_coverage(ones)
    assert coverage.tolist() == [[0.5, 0.75, 1.0]] and risk.tolist() == [[0.5, pytest.approx(1 / 3), 0.5]]
    assert found.aurc(ones)[0] == pytest.approx((0.5 + 0.5 + 1 / 3 + 0.5) / 4)


def test_auroc_is_undefined_where_nothing_failed() -> None:
    found = Failures(np.array([1.0, 2]), np.array([1.0, 1]))
    assert np.isnan(found.auroc(np.ones((1, 2)))).all() and found.aurc(np.ones((1, 2)))[0] == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3)), min_size=2, max_size=12))
def test_the_figures_are_those_of_the_definitions(rows: list[tuple[int, int, int]]) -> None:
    """A weight of k is as k copies."""
    scores, weak, weights = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    weak = weak / 4
    copies = [place for place, weight in enumerate(weights) for _ in range(int(weight))]
    found = Failures(scores, weak)
    if 0 < weak.mean() < 1:
        assert found.auroc(weights[None])[0] == pytest.approx(slow.auroc(scores[copies], weak[copies]))
    assert found.aurc(weights[None])[0] == pytest.approx(slow.aurc(scores[copies], weak[copies]))
