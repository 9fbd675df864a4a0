"""The threshold on the complexity score that meets a wish: a share of cloud calls, an error rate of the device, or a budget.

Fitted on one half of the prompts and measured on the other, through `decide`, so that whatever else the policy decides (privacy, rules,
long prompts) is counted as it is. A share holds for prompts like these: see `drift`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.errors import InvalidRequest
from ..confidence.threshold import Promised, promised_threshold
from ..policy.policy import Policy
from .bootstrap import measure
from .figure import Figure, Floats, Interval, figure
from .replay import NO_OUTCOMES, NO_PRICES, Decided

GRID = 20  # quantiles of the other half's scores, among which a promise chooses
RIGHT = 0.5  # a score of the device from here on counts as a right answer


@dataclass(frozen=True, slots=True)
class Half:
    """What a threshold comes to on some prompts: figures with their intervals; undefined where the rows cannot say."""

    rows: int
    figures: dict[str, Figure]
    intervals: dict[str, Interval]


def threshold_for_share(decided: Sequence[Decided], share: float, *, band: float = 0.0, handover: float = 1.0) -> float:
    """The threshold whose cloud share on these rows comes nearest to `share`; of equally near ones the one with fewer calls."""
    steps = _Steps.of(decided)
    found = np.array([steps.calls(t, band, handover).mean() for t in steps.candidates])
    off = np.abs(found - share)
    return float(steps.candidates[np.flatnonzero(off <= off.min() + 1e-12)[-1]])


def threshold_for_budget(decided: Sequence[Decided], budget: float, *, band: float = 0.0, handover: float = 1.0) -> float:
    """The lowest threshold that costs at most `budget` a prompt on these rows. Raises InvalidRequest without prices, or if none does."""
    prices = np.array([one.cloud_price for one in decided if one.cloud_price is not None])
    if len(prices) < len(decided):
        raise InvalidRequest("a budget needs prices", param="budget", hint=NO_PRICES)
    steps = _Steps.of(decided)
    costs = np.array([(steps.calls(t, band, handover) * prices).mean() for t in steps.candidates])
    if not (costs <= budget).any():
        raise InvalidRequest(f"the policy costs {costs.min():.4g} a prompt at least, whatever the threshold", param="budget")
    return float(steps.candidates[costs <= budget].min())


def threshold_for_errors(decided: Sequence[Decided], other: Sequence[Decided], error_rate: float, delta: float) -> tuple[float, Promised]:
    """The highest threshold below which the device may answer: with probability 1 - delta at most `error_rate` of that is wrong.

    `other`: rows that lend nothing but their scores, for the grid. Raises CannotPromise where no threshold keeps the promise.
    """
    rows = [one for one in decided if free(one)]
    if not rows or any(one.weak is None for one in rows):
        raise InvalidRequest(NO_OUTCOMES, param="error-rate", hint="an error rate needs the scores of the device's model")
    grid = np.quantile([-one.complexity for one in other if free(one)] or [0.0], np.linspace(0, 1, GRID))
    wrong = [one.weak is not None and one.weak < RIGHT for one in rows]
    promised = promised_threshold([-one.complexity for one in rows], wrong, error_rate=error_rate, delta=delta, grid=grid.tolist())
    return above(-promised.threshold), promised  # the device answers below the threshold, and the promise includes its own score


def above(score: float) -> float:
    """The next number: the device keeps `score` itself."""
    return float(min(1.0, np.nextafter(score, 2.0)))


def free(one: Decided) -> bool:
    """Whether the complexity decides where it goes."""
    return one.rule.startswith(("complexity.", "speculation."))


def with_threshold(policy: Policy, threshold: float, band: float) -> Policy:
    complexity = msgspec.structs.replace(policy.complexity, cascade_from=max(0.0, threshold - band), hard_from=threshold)
    return msgspec.structs.replace(policy, complexity=complexity)


def measured(decided: Sequence[Decided], *, seed: int = 0) -> Half:
    """Of decisions that a policy made: cloud_share, cost, accuracy, and device_error, the share of wrong answers among the device's own."""
    nan = float("nan")
    calls = np.array([one.cloud_calls for one in decided])
    cost = np.array([nan if one.cost is None else one.cost for one in decided])
    quality = np.array([nan if (reached := one.quality) is None else reached for one in decided])
    local = np.array([float(one.route == "edge") for one in decided])
    wrong = np.array([nan if one.weak is None else float(one.weak < RIGHT) for one in decided])

    def figures(weights: Floats) -> dict[str, Floats]:
        total, at_home = weights.sum(axis=1), weights @ local
        failed = weights @ (local * wrong)
        return {
            "cloud_share": weights @ calls / total,
            "cost": weights @ cost / total,
            "accuracy": weights @ quality / total,
            "device_error": np.divide(failed, at_home, out=np.full(len(weights), nan), where=at_home > 0),
        }

    found = measure([one.group for one in decided], figures, seed=seed)
    why = {"cost": NO_PRICES}
    return Half(
        len(decided),
        {name: figure(value, why.get(name, NO_OUTCOMES)) for name, value in found.value.items()},
        {name: found.interval(name) for name in found.value},
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Steps:
    """`free` [n]: whether the complexity decides; else `fixed` [n] are the calls. `candidates`: all thresholds that make a difference."""

    scores: Floats
    free: NDArray[np.bool_]
    fixed: Floats
    candidates: Floats  # ascending: each score, and one above them all

    @staticmethod
    def of(decided: Sequence[Decided]) -> _Steps:
        scores, ours = np.array([one.complexity for one in decided]), np.array([free(one) for one in decided])
        distinct = np.unique(scores[ours]) if ours.any() else np.zeros(1)
        candidates = np.append(distinct, above(float(distinct[-1])))
        return _Steps(scores, ours, np.array([one.cloud_calls for one in decided]), candidates)

    def calls(self, threshold: float, band: float, handover: float) -> Floats:
        """[n]: calls of the cloud per row; what the complexity does not decide stays as it is."""
        banded = np.where(self.scores >= threshold - band, handover, 0.0)
        return np.where(self.free, np.where(self.scores >= threshold, 1.0, banded), self.fixed)
