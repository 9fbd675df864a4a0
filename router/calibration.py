"""From a score to a probability: monotone maps, fitted on outcomes, kept as plain numbers.

    Isotonic      any non-decreasing map                       needs some hundred outcomes
    Logistic      sigmoid(slope * score + intercept)           any score, a few dozen outcomes
    Temperature   sigmoid(logit(p) / t)                        for a score that is a probability already, and order must stay

Scores are finite and higher means likelier; outcomes lie in 0..1 (a grade counts in part). How good a map is, is measured elsewhere,
on outcomes that it was not fitted on.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec

from ..shared_protocol.errors import InvalidRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Isotonic(msgspec.Struct, frozen=True, tag="isotonic"):
    """Linear between knots, constant beyond the first and the last."""

    scores: tuple[float, ...]  # ascending, no two equal, at least one
    values: tuple[float, ...]  # one per score, non-decreasing, 0..1

    def __post_init__(self) -> None:
        if not self.scores or len(self.scores) != len(self.values):
            raise ValueError("a map needs at least one knot, and a value for each")
        if any(not a < b for a, b in pairwise(self.scores)) or any(not a <= b for a, b in pairwise(self.values)):
            raise ValueError("the scores of a map ascend, and its values never fall")
        if not all(map(math.isfinite, self.scores)) or not 0 <= self.values[0] <= self.values[-1] <= 1:
            raise ValueError("the scores of a map are finite, and its values lie between 0 and 1")

    def __call__(self, score: float) -> float:
        above = bisect_right(self.scores, score)
        if above == 0:
            return self.values[0]
        if above == len(self.scores):
            return self.values[-1]
        (x0, x1), (y0, y1) = self.scores[above - 1 : above + 1], self.values[above - 1 : above + 1]
        return y0 if y0 == y1 else y0 + (y1 - y0) * ((score - x0) / (x1 - x0))

    def many(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for an array, float64 [n] to float64 [n]."""
        import numpy as np

        return np.interp(scores, self.scores, self.values)


class Logistic(msgspec.Struct, frozen=True, tag="logistic"):
    slope: float
    intercept: float

    def __call__(self, score: float) -> float:
        return sigmoid(self.slope * score + self.intercept)


class Temperature(msgspec.Struct, frozen=True, tag="temperature"):
    t: float  # above 1: less sure than the score says

    def __call__(self, probability: float) -> float:
        return sigmoid(log_odds(probability) / self.t)


Calibration = Isotonic | Logistic | Temperature


def fit_isotonic(scores: Sequence[float], outcomes: Sequence[float], weights: Sequence[float] | None = None) -> Isotonic:
    """The non-decreasing map of least squared error, by pooling adjacent violators; O(n log n). Equal scores are one point.

    A pool keeps its lowest and its highest score as knots. Raises InvalidRequest for no outcomes, unequal lengths, or numbers that are
    not finite, not in 0..1 (outcomes) or not positive (weights).
    """
    pools: list[tuple[float, float, float, float]] = []  # lowest score, highest score, weighted sum, weight
    for score, same in groupby(sorted(_checked(scores, outcomes, weights)), key=itemgetter(0)):
        low, rows = score, list(same)
        sums, total = math.fsum(y * w for _, y, w in rows), math.fsum(w for _, _, w in rows)
        while pools and pools[-1][2] * total >= sums * pools[-1][3]:
            low, _, before, weight_before = pools.pop()
            sums, total = sums + before, total + weight_before
        pools.append((low, score, sums, total))
    knots: list[tuple[float, float]] = []
    for low, high, sums, total in pools:
        value = min(1.0, max(sums / total, knots[-1][1] if knots else 0.0))  # rounding must not make it fall
        knots += [(low, value)] if low == high else [(low, value), (high, value)]
    return Isotonic(tuple(x for x, _ in knots), tuple(y for _, y in knots))


def fit_logistic(scores: Sequence[float], outcomes: Sequence[float]) -> Logistic:
    """Maximum likelihood by Newton's method on standardised scores, against targets pulled towards the middle as Platt does:
    a right answer counts (n1 + 1) / (n1 + 2), a wrong one 1 / (n0 + 2), so that scores which separate the two have a finite slope.

    A falling relation is kept as a negative slope: what is anti-predictive should be seen. Raises as `fit_isotonic` does.
    """
    rows = _checked(scores, outcomes, None)
    right = math.fsum(outcome for _, outcome, _ in rows)
    wrong = len(rows) - right
    high, low = (right + 1) / (right + 2), 1 / (wrong + 2)
    centre = math.fsum(score for score, _, _ in rows) / len(rows)
    spread = math.sqrt(math.fsum((score - centre) ** 2 for score, _, _ in rows) / len(rows))
    if spread == 0:
        return Logistic(0.0, log_odds((right + 1) / (len(rows) + 2)))
    points = [((score - centre) / spread, low + (high - low) * outcome) for score, outcome, _ in rows]
    slope, intercept = _newton(points)
    return Logistic(slope / spread, intercept - slope * centre / spread)


def fit_temperature(probabilities: Sequence[float], outcomes: Sequence[float]) -> Temperature:
    """The temperature between 1/20 and 20 of least log loss, to three digits, by golden section on its logarithm.

    Raises as `fit_isotonic` does, and for probabilities outside 0..1.
    """
    rows = [(log_odds(probability), outcome) for probability, outcome, _ in _checked(probabilities, outcomes, None)]

    def loss(log_t: float) -> float:
        return math.fsum(_log_loss(odds / math.exp(log_t), outcome) for odds, outcome in rows)

    low, high = -math.log(20), math.log(20)
    golden = (math.sqrt(5) - 1) / 2
    while high - low > 1e-4:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    return Temperature(round(math.exp((low + high) / 2), 3))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def log_odds(probability: float) -> float:
    """Finite for 0 and 1 too. Raises InvalidRequest outside of 0..1."""
    if not 0 <= probability <= 1:
        raise InvalidRequest(f"a probability lies between 0 and 1, found {probability}")
    inside = min(max(probability, 1e-12), 1 - 1e-12)
    return math.log(inside / (1 - inside))


def _newton(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Slope and intercept for standardised scores. The targets lie inside 0..1, so the optimum is finite and the loss convex."""
    slope, intercept = 0.0, 0.0
    best = _total_loss(points, slope, intercept)
    for _ in range(50):
        g0 = g1 = 0.0
        h00 = h01 = h11 = 1e-9
        for x, target in points:
            p = sigmoid(slope * x + intercept)
            error, weight = p - target, p * (1 - p)
            g0, g1 = g0 + error, g1 + error * x
            h00, h01, h11 = h00 + weight, h01 + weight * x, h11 + weight * x * x
        determinant = h00 * h11 - h01 * h01
        step0, step1 = (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant
        stride = 1.0
        while (found := _total_loss(points, slope - stride * step1, intercept - stride * step0)) > best and stride > 1e-6:
            stride /= 2
        slope, intercept, gained, best = slope - stride * step1, intercept - stride * step0, best - found, min(best, found)
        if gained < 1e-12 * len(points):
            break
    return slope, intercept


def _total_loss(points: Sequence[tuple[float, float]], slope: float, intercept: float) -> float:
    return math.fsum(_log_loss(slope * x + intercept, target) for x, target in points)


def _log_loss(odds: float, target: float) -> float:
    """-target log p - (1 - target) log(1 - p), p = sigmoid(odds)."""
    return max(odds, 0.0) - odds * target + math.log1p(math.exp(-abs(odds)))


def _checked(scores: Sequence[float], outcomes: Sequence[float], weights: Sequence[float] | None) -> list[tuple[float, float, float]]:
    weights = [1.0] * len(scores) if weights is None else weights
    if not len(scores) == len(outcomes) == len(weights) or not len(scores):
        raise InvalidRequest(
            f"{len(scores)} scores came with {len(outcomes)} outcomes and {len(weights)} weights", hint="at least one of each"
        )
    rows = [(float(x), float(y), float(w)) for x, y, w in zip(scores, outcomes, weights, strict=True)]
    if not all(math.isfinite(x) and 0 <= y <= 1 and 0 < w < math.inf for x, y, w in rows):
        raise InvalidRequest("scores are finite, outcomes lie between 0 and 1, weights are positive")
    return rows
