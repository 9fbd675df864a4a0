"""A fitted threshold gives what was wished for, on these rows exactly and on others within its interval; a promise is kept."""

from pathlib import Path

import numpy as np
import pytest
from hybrid.router.evaluate.folds import fold_of
from hybrid.router.evaluate.replay import Decided, replay
from hybrid.router.evaluate.rows import read_rows
from hybrid.router.evaluate.thresholds import (
    above,
    measured,
    threshold_for_budget,
    threshold_for_errors,
    threshold_for_share,
    with_threshold,
)
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import CannotPromise, InvalidRequest
from hybrid.tests.router.evaluate.test_outcomes import written


def decided(
    complexity: float, *, rule: str = "complexity.hard_from", calls: float = 1.0, weak: float | None = 1.0, price: float | None = 1.0
) -> Decided:
    route = "cloud" if calls else "edge"
    return Decided("id", "group", route, "hard", rule, "", complexity, "public", 9, calls, 0, None, None, price, None, weak, 1.0)


TEN = [decided(number / 10) for number in range(10)]


@pytest.mark.parametrize(("share", "threshold"), [(0.3, 0.7), (0.33, 0.7), (1.0, 0.0), (0.0, above(0.9)), (0.26, 0.7), (0.25, 0.8)])
def test_the_share_that_comes_nearest_and_of_two_the_smaller(share: float, threshold: float) -> None:
    assert threshold_for_share(TEN, share) == threshold


def test_equal_scores_cannot_be_parted() -> None:
    assert threshold_for_share([decided(0.5)] * 10, 0.3) == above(0.5)
    assert threshold_for_share([decided(0.5)] * 10, 0.7) == 0.5


def test_what_the_complexity_does_not_decide_counts_as_it_is() -> None:
    """Two of ten always go to the cloud: one more makes .3."""
    fixed = [decided(0.05, rule="rule.always"), decided(0.95, rule="rule.always")]
    assert threshold_for_share([*fixed, *TEN[:8]], 0.3) == 0.7


def test_a_band_of_cascades_counts_as_often_as_it_is_handed_over() -> None:
    assert threshold_for_share(TEN, 0.3, band=0.2, handover=0.5) == pytest.approx(0.8)  # .8 and .9, and half of .6 and .7
    assert threshold_for_share(TEN, 0.3, band=0.2, handover=0.0) == 0.7


def test_a_budget_is_never_exceeded() -> None:
    dear = [decided(number / 10, price=float(number)) for number in range(10)]  # from .8 on: 17 in all
    assert threshold_for_budget(dear, 1.7) == 0.8 and threshold_for_budget(dear, 1.69) == 0.9
    assert threshold_for_budget(dear, 0.0) == above(0.9)
    with pytest.raises(InvalidRequest, match="prices"):
        threshold_for_budget([decided(0.1, price=None)], 1.0)
    with pytest.raises(InvalidRequest, match="at least"):
        threshold_for_budget([decided(0.1, rule="rule.always")], 0.5)


def test_a_promise_is_kept_by_the_rows_below_the_threshold_itself_included() -> None:
    """The device fails from .6 on: with 2000 rows the last whole step below can be promised."""
    rows = [decided(number % 10 / 10, weak=float(number % 10 < 6)) for number in range(2000)]
    threshold, promised = threshold_for_errors(rows, rows, 0.05, 0.1)
    assert threshold == above(0.5) and (promised.kept, promised.wrong) == (1200, 0)
    with pytest.raises(CannotPromise):
        threshold_for_errors([decided(0.1, weak=0.0)] * 200, rows, 0.05, 0.1)
    with pytest.raises(InvalidRequest, match="no scores"):
        threshold_for_errors([decided(0.1, weak=None)], rows, 0.05, 0.1)


def test_a_promise_holds_on_rows_it_has_not_seen() -> None:
    """At most one of ten promises may fail; of 60 there are 12 or more with a chance of 1 %."""
    random, made, broken = np.random.default_rng(4), 0, 0
    for _ in range(60):
        scores = random.random(800)
        rows = [decided(float(s), weak=float(right)) for s, right in zip(scores, random.random(800) > 0.5 * scores, strict=True)]
        try:
            threshold, _ = threshold_for_errors(rows[:600], rows[600:], 0.15, 0.1)
        except CannotPromise:  # a promise that is not made is not broken
            continue
        made += 1
        broken += threshold / 4 > 0.15  # half the mean score of what is kept: the true rate
    assert made > 40 and broken < 12


def test_measuring_by_hand() -> None:
    edge = [decided(0.1, calls=0.0, weak=weak) for weak in (0.0, 1.0, 1.0, 1.0)]
    found = measured([*edge, *[decided(0.9, weak=0.0)] * 4])
    assert {name: found.figures[name] for name in ("cloud_share", "accuracy", "device_error")} == {
        "cloud_share": 0.5,
        "accuracy": 7 / 8,
        "device_error": 0.25,
    }


def test_thirty_percent_are_thirty_percent_on_the_held_out_half(mixed: Path) -> None:
    """Row G64."""
    rows, policy = read_rows(mixed), Policy.default()
    half = fold_of([row.group for row in rows], 2)
    fitted, held = ([row for row, part in zip(rows, half, strict=True) if part == side] for side in (0, 1))
    new = with_threshold(policy, threshold_for_share(replay(fitted, policy), 0.3), 0.0)
    share = measured(replay(held, new)).figures["cloud_share"]
    assert isinstance(share, float) and abs(share - 0.3) <= 0.03


def test_a_row_whose_threshold_is_exact_goes_as_it_was_counted(tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path / "a.jsonl", *({"prompt": "Prove it, " * n} for n in range(1, 30))))
    found = replay(rows, Policy.default())
    for share in (0.0, 0.2, 0.5, 1.0):
        new = with_threshold(Policy.default(), threshold_for_share(found, share), 0.0)
        assert measured(replay(rows, new)).figures["cloud_share"] == pytest.approx(share, abs=0.5 / 29 + 1e-9)
