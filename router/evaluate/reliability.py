"""Whether a predicted probability can be taken at its word: calibration by bins, and the Brier score.

    ECE   = sum over bins of share * |mean prediction - mean outcome|      bins of equal numbers of rows, not of equal width
    Brier = mean of (prediction - outcome)^2

Sources: Naeini et al. 2015 (ECE), with the equal-mass bins of Nixon et al., arXiv 1904.01685: bins of equal width leave the sparse
ones to chance. Brier 1950. Outcomes are scores in 0..1; with half points the Brier score of even a perfect forecast is not 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .figure import Floats
from .tied import Tied

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows of neighbouring predictions."""

    n: int
    predicted: float  # mean
    observed: float  # mean outcome


class Reliability:
    """Of fixed predictions of fixed outcomes. `bin_of` [n]; a group of equal predictions lies in one bin, whole."""

    def __init__(self, predicted: Floats, outcome: Floats, bins: int = BINS) -> None:
        self._predicted, self._outcome = predicted, outcome
        self.bin_of = equal_mass(predicted, bins)
        self._member = (self.bin_of[:, None] == np.arange(bins)).astype(np.float64)

    def ece(self, weights: Floats) -> Floats:
        """[b] for weights [b, n]. Its resamples lie a little high: noise makes bins differ, never agree."""
        off: Floats = np.abs((weights * (self._predicted - self._outcome)) @ self._member).sum(axis=1) / weights.sum(axis=1)
        return off

    def brier(self, weights: Floats) -> Floats:
        """[b] for weights [b, n]."""
        found: Floats = weights @ (self._predicted - self._outcome) ** 2 / weights.sum(axis=1)
        return found

    def bins(self) -> list[Bin]:
        """By rising prediction; bins that equal predictions have left empty are not there."""
        found = []
        for number in np.unique(self.bin_of):
            rows = self.bin_of == number
            found.append(Bin(int(rows.sum()), float(self._predicted[rows].mean()), float(self._outcome[rows].mean())))
        return found


def equal_mass(values: Floats, bins: int) -> NDArray[np.int64]:
    """[n]: the bin 0..bins - 1 of each value, by where the middle of its group of equals stands among all."""
    tied = Tied.of(-values)
    first = np.concatenate([[0], tied.ends[:-1] + 1])
    middle = (first + tied.ends + 1) / 2 / len(values)
    found = np.empty(len(values), dtype=np.int64)
    found[tied.order] = np.repeat(np.minimum((middle * bins).astype(np.int64), bins - 1), np.diff(np.append(first, len(values))))
    return found
