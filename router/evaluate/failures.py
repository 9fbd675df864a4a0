"""How well a score tells the prompts that the device will fail from those that it will not.

    AUROC           probability that a failed prompt has the higher score than one that went well; equal scores count half
    risk(coverage)  how wrong the device is on the `coverage` of prompts with the lowest scores, which it would keep
    AURC            mean of that risk over all coverages; lower is better

Sources: Hanley and McNeil 1982; El-Yaniv and Wiener 2010, Geifman et al., arXiv 1805.08206. An outcome of .3 is 30 % of a success and 70 %
of a failure. Coverage steps by whole groups of equal scores.
"""

from __future__ import annotations

import numpy as np

from .figure import Floats
from .tied import Tied


class Failures:
    """Of one score over fixed rows. `weak` [n]: the device's scores, 0..1. All functions: weights [b, n] -> [b]."""

    def __init__(self, scores: Floats, weak: Floats) -> None:
        self._falling = Tied.of(scores)
        self._rising = Tied.of(-scores)
        self._weak = weak

    def auroc(self, weights: Floats) -> Floats:
        """NaN where everything failed, or nothing did."""
        failed = self._falling.running(weights * (1 - self._weak))
        went_well = self._falling.running(weights * self._weak)
        before = np.hstack([np.zeros((len(weights), 1)), failed[:, :-1]])
        above = ((failed + before) / 2 * np.diff(went_well, axis=1, prepend=0)).sum(axis=1)
        pairs = failed[:, -1] * went_well[:, -1]
        found: Floats = np.divide(above, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)
        return found

    def risk_coverage(self, weights: Floats) -> tuple[Floats, Floats]:
        """(coverage, risk), each [b, m]; NaN where a resample has nothing to keep yet."""
        kept = self._rising.running(weights)
        failed = self._rising.running(weights * (1 - self._weak))
        risk = np.divide(failed, kept, out=np.full(kept.shape, np.nan), where=kept > 0)
        return kept / kept[:, -1:], risk

    def aurc(self, weights: Floats) -> Floats:
        coverage, risk = self.risk_coverage(weights)
        found: Floats = np.nansum(risk * np.diff(coverage, axis=1, prepend=0), axis=1)
        return found
