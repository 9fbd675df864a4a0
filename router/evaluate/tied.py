"""Rows in the order of a score, and where its ties end: what is equal to a router is moved together, never in the order of the file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .figure import Floats


@dataclass(frozen=True, eq=False, slots=True)
class Tied:
    """`order` [n]: rows by falling score. `ends` [m]: the last place of each group of equal scores. `values` [m]: their scores."""

    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    values: Floats

    @staticmethod
    def of(scores: Floats) -> Tied:
        """`scores` [n], at least one, all finite: a score that is none has no place in an order (ValueError)."""
        if not len(scores) or not np.isfinite(scores).all():
            raise ValueError("an order needs scores, and all of them finite")
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order]
        ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
        return Tied(order, ends, ranked[ends])

    def running(self, weighted: Floats) -> Floats:
        """[b, n] per row, in the order of the file -> [b, m]: the sum over all rows up to the end of each group."""
        return np.cumsum(weighted[:, self.order], axis=1)[:, self.ends]
