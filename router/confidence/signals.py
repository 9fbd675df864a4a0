"""How far a local answer can be trusted, from the log-probabilities of its own tokens.

The sum of log-probabilities punishes length and the mean hides one bad token among many good ones; a low quantile beside the
mean does neither (Gupta et al., arXiv 2404.10136). Raw, not calibrated: the calibration of a decision is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..policy import ConfidencePolicy


def confidence(logprobs: Sequence[float], policy: ConfidencePolicy) -> float | None:
    """0..1 from the natural log-probability of each token of the answer; None when there is nothing to judge by.

        confidence = exp((1 - w) * mean + w * quantile)      w = quantile_weight

    Both are token-level, so an answer twice as long is not half as trusted.
    """
    values = sorted(logprobs)
    if not values or any(math.isnan(value) or value > 1e-6 for value in values):
        return None
    mean = math.fsum(max(value, _FLOOR) for value in values) / len(values)
    low = max(_quantile(values, policy.quantile), _FLOOR)
    weight = policy.quantile_weight
    return min(1.0, math.exp((1 - weight) * mean + weight * low))


_FLOOR = -50.0  # a token of probability 0 must not make the arithmetic infinite


def _quantile(ascending: Sequence[float], q: float) -> float:
    """Linear between the two nearest ranks, as NumPy's default."""
    place = q * (len(ascending) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ascending) - 1)
    if ascending[below] == ascending[above]:
        return ascending[below]
    return ascending[below] + (place - below) * (ascending[above] - ascending[below])
