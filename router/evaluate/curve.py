"""What quality a router buys for which share of strong calls, and the figures read off that curve.

    PGR(t)  = (quality(t) - weak) / (strong - weak)          share of the gap that is won; above 1 where the weak model helps
    APGR    = area of PGR over the share of strong calls     random .5
    CPT(x)  = the smallest share of strong calls with PGR >= x

Source: RouteLLM, Ong et al., arXiv 2406.18665, section 4. The curve steps by whole groups of equal scores, since no threshold parts
them; between two points it is a straight line, which is what drawing lots among the equal would give.

All functions work on many weightings of the rows at once (a weighting is a resample, see `bootstrap`) and write NaN for undefined.
"""

from __future__ import annotations

import numpy as np

from .figure import Floats
from .tied import Tied

LEAST_GAP = 0.005  # strong - weak, below which its shares say nothing


class Curves:
    """Of one score over fixed rows. `weights` [b, n] are natural numbers, each row's copies; ones give the curve of the rows."""

    def __init__(self, scores: Floats, weak: Floats, strong: Floats) -> None:
        self.tied = Tied.of(scores)
        self._weak = weak
        self._gain = strong - weak

    def points(self, weights: Floats) -> tuple[Floats, Floats]:
        """(share, quality), each [b, m + 1]: nobody calls the strong model, then one group of equal scores after the other does."""
        total = weights.sum(axis=1, keepdims=True)
        start = (weights @ self._weak)[:, None] / total
        share = self.tied.running(weights) / total
        quality = start + self.tied.running(weights * self._gain) / total
        zero = np.zeros_like(start)
        return np.hstack([zero, share]), np.hstack([start, quality])


def gap(quality: Floats) -> Floats:
    """[b]: what the strong model is better by; NaN where that is less than LEAST_GAP."""
    found = quality[:, -1] - quality[:, 0]
    return np.where(found >= LEAST_GAP, found, np.nan)


def pgr(quality: Floats) -> Floats:
    """[b, m + 1]: the share of the gap that is won at each point."""
    won: Floats = (quality - quality[:, :1]) / gap(quality)[:, None]
    return won


def apgr(share: Floats, quality: Floats) -> Floats:
    """[b]: may exceed 1, and fall below 0."""
    won = pgr(quality)
    area: Floats = ((won[:, 1:] + won[:, :-1]) * np.diff(share, axis=1)).sum(axis=1) / 2
    return area


def cpt(share: Floats, quality: Floats, level: float) -> Floats:
    """[b]: `level` in (0, 1], such as .5. Everybody calling the strong model reaches 1, so there is always such a share."""
    won = pgr(quality)
    reached = won >= level - 1e-12
    first = np.argmax(reached, axis=1)
    found: Floats = share[np.arange(len(share)), first]
    return np.where(reached.any(axis=1), found, np.nan)
