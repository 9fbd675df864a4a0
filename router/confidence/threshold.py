"""The lowest threshold that keeps a promise: with probability 1 - delta over the outcomes that it is chosen from, at most `error_rate` of
what is kept from there on is wrong.

Each threshold of a grid is a hypothesis, "more than error_rate of what this one keeps is wrong", rejected by an exact binomial test (which
is to say: the upper Clopper-Pearson bound lies at or below error_rate). Thresholds are tested from the strictest down, from a few
starts that share delta, each going on for as long as it rejects: so no trial after the first one costs anything (multi-start fixed
sequence testing; Angelopoulos et al., "Learn then Test", arXiv 2110.01052).

The promise is about questions like those of the outcomes, drawn as they were, and about the same model: neither another language nor
another quantisation is covered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...shared_protocol.errors import CannotPromise, InvalidRequest

STARTS = 4
GRID = tuple(number / 20 for number in range(20))  # for scores in 0..1, where nothing is known of how they lie


@dataclass(frozen=True, slots=True)
class Promised:
    """A score of `threshold` or more is kept."""

    threshold: float
    error_rate: float  # promised: at most so many of the kept are wrong ...
    delta: float  # ... but for a chance of this much
    kept: int  # of the outcomes
    wrong: int  # of the kept
    n: int  # outcomes


def promised_threshold(
    scores: Sequence[float],
    wrong: Sequence[bool],
    *,
    error_rate: float,
    delta: float = 0.1,
    grid: Sequence[float] = GRID,
    starts: int = STARTS,
) -> Promised:
    """`wrong[i]`: whether what scored `scores[i]` is wrong; `error_rate` and `delta` lie between 0 and 1.

    `grid` holds the thresholds to choose from. It must not depend on these outcomes: fixed, or quantiles of other scores.
    Raises CannotPromise when no threshold passes, and says why; InvalidRequest for numbers that are none.
    """
    _check(scores, wrong, grid, error_rate, delta, starts)
    thresholds = sorted(set(grid), reverse=True)
    counts = [_counts(scores, wrong, threshold) for threshold in thresholds]
    share = delta / min(starts, len(thresholds))
    # Not below the promised rate itself: no need for an exact test.
    passed = [errors < error_rate * kept and binomial_cdf(errors, kept, error_rate) <= share for kept, errors in counts]
    found = -1
    for start in {number * len(thresholds) // starts for number in range(starts)}:
        at = start
        while at < len(thresholds) and passed[at]:
            found, at = max(found, at), at + 1
    if found < 0:
        raise _refusal(counts, error_rate, delta, share)
    kept, errors = counts[found]
    return Promised(thresholds[found], error_rate, delta, kept, errors, len(scores))


def promise_by_halves(
    scores: Sequence[float], wrong: Sequence[bool], tested: Sequence[bool], *, error_rate: float, delta: float = 0.1, points: int = 20
) -> Promised:
    """The same without a grid to name: the outcomes that are not `tested` draw it, and say where to begin: at the threshold that they would
    pass most clearly. The tested ones, which had no part in that, spend all of delta from there. Raises as `promised_threshold` does.
    """
    if not len(scores) == len(wrong) == len(tested) or all(tested) or not any(tested):
        raise InvalidRequest("both halves need outcomes, and every outcome a half")
    first = [(score, bool(bad)) for score, bad, held in zip(scores, wrong, tested, strict=True) if not held]
    second = [(score, bool(bad)) for score, bad, held in zip(scores, wrong, tested, strict=True) if held]
    ascending = sorted(score for score, _ in first)
    grid = sorted({ascending[number * len(ascending) // points] for number in range(points)})
    counts = [_counts([score for score, _ in first], [bad for _, bad in first], threshold) for threshold in grid]
    clearest = min(range(len(grid)), key=lambda at: (binomial_cdf(counts[at][1], counts[at][0], error_rate), at))
    return promised_threshold(
        [score for score, _ in second],
        [bad for _, bad in second],
        error_rate=error_rate,
        delta=delta,
        grid=grid[: clearest + 1],
        starts=1,
    )


def needed(error_rate: float, delta: float) -> int:
    """How many kept outcomes, none of them wrong, are the least that any promise can rest on."""
    return math.ceil(math.log(delta) / math.log1p(-error_rate))


def upper_bound(wrong: int, n: int, delta: float) -> float:
    """Clopper-Pearson: the error rate at which so few errors among n have the probability delta; 1 for n = wrong."""
    low, high = wrong / n if n else 0.0, 1.0
    if wrong >= n:
        return 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_cdf(wrong, n, middle) > delta else (low, middle)
    return high


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X <= k), X the number of successes of n trials of probability p in (0, 1)."""
    if k >= n:
        return 1.0
    log_p, log_q, log_n = math.log(p), math.log1p(-p), math.lgamma(n + 1)
    terms = (log_n - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_p + (n - i) * log_q for i in range(k + 1))
    return min(1.0, math.fsum(map(math.exp, terms)))


def _counts(scores: Sequence[float], wrong: Sequence[bool], threshold: float) -> tuple[int, int]:
    """How many are kept, and how many of these are wrong."""
    kept = [bad for score, bad in zip(scores, wrong, strict=True) if score >= threshold]
    return len(kept), sum(map(bool, kept))


def _rate(count: tuple[int, int]) -> float:
    """What share of the kept is wrong, a little more where few are."""
    kept, errors = count
    return (errors + 1) / (kept + 1)


def _refusal(counts: Sequence[tuple[int, int]], error_rate: float, delta: float, share: float) -> CannotPromise:
    least = needed(error_rate, share)
    most = max(kept for kept, _ in counts)
    asked = f"at most {error_rate:.1%} wrong, with probability {1 - delta:.0%},"
    if most < least:
        return CannotPromise(
            f"{asked} cannot be promised from {most} outcomes: at least {least} right ones are needed",
            hint="collect more outcomes, or promise less",
        )
    bounds = [upper_bound(errors, kept, share) for kept, errors in sorted(counts, key=_rate)[:5] if kept]
    return CannotPromise(
        f"{asked} cannot be promised at any threshold: the best one bounds the error rate by {min(bounds):.1%}",
        hint="promise a higher error rate, collect more outcomes, or use a signal that tells right from wrong better",
    )


def _check(scores: Sequence[float], wrong: Sequence[bool], grid: Sequence[float], error_rate: float, delta: float, starts: int) -> None:
    if len(scores) != len(wrong):
        raise InvalidRequest(f"{len(scores)} scores came with {len(wrong)} outcomes")
    if not grid or not all(map(math.isfinite, grid)) or not all(map(math.isfinite, scores)):
        raise InvalidRequest("scores and thresholds must be finite, and there must be a threshold to choose")
    if not (0 < error_rate < 1 and 0 < delta < 1 and starts >= 1):
        raise InvalidRequest(f"error_rate and delta lie between 0 and 1, found {error_rate} and {delta}", param="error_rate")
