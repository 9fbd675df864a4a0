"""The baseline with a memory for words: ridge regression of the strong model's gain on hashed TF-IDF features.

    w = argmin |X w - (gain - mean gain)|^2 + 30 |w|^2, X as `learned.hashed` says

One setting serves both of the sets that `scorers` names: less ridge is better on the one and worse on the other. The features are
sparse and the ridge is strong, so a dozen steps solve it, without a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..learned.hashed import BUCKETS, Counts, Floats, solve_ridge
from .outcomes import Outcome

RIDGE = 30.0


class TfidfRidge:
    """Deterministic: no random number, and a hash that is the same on every machine."""

    name = "tfidf_ridge"

    def __init__(self, *, buckets: int = BUCKETS, ridge: float = RIDGE) -> None:
        self._buckets = buckets
        self._ridge = ridge
        self._idf: Floats = np.ones(buckets)
        self._weights: Floats = np.zeros(buckets)
        self._mean = 0.0

    def fit(self, rows: Sequence[Outcome]) -> None:
        counts = Counts.of([row.prompt for row in rows], self._buckets)
        self._idf = counts.idf()
        gain = np.array([row.gain for row in rows], dtype=np.float64)
        self._mean = float(gain.mean())
        self._weights = solve_ridge(counts.times(self._idf), gain - self._mean, self._ridge)

    def score(self, prompts: Sequence[str]) -> Floats:
        return Counts.of(prompts, self._buckets).times(self._idf).of(self._weights) + self._mean
