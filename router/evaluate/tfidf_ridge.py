"""The baseline with a memory for words: ridge regression of the strong model's gain on hashed TF-IDF features.

    x(prompt)[h] = (1 + ln count) * idf(h), h = CRC-32 of a word or sign modulo 4096, scaled to length 1
    idf(h)       = ln((1 + rows) / (1 + rows with h)) + 1
    w            = argmin |X w - (gain - mean gain)|^2 + 30 |w|^2

One setting serves both of the sets that `scorers` names: less ridge is better on the one and worse on the other. The features are
sparse and the ridge is strong, so a dozen steps of conjugate gradients (Hestenes and Stiefel 1952) solve it, without a matrix.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .outcomes import Outcome

BUCKETS = 4096
RIDGE = 30.0
_TERM = re.compile(r"[^\W_]+|[^\w\s]|_")

Floats = NDArray[np.float64]


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
        counts = _Counts([row.prompt for row in rows], self._buckets)
        seen = np.bincount(counts.bucket, minlength=self._buckets)
        self._idf = np.log((1 + len(rows)) / (1 + seen)) + 1
        gain = np.array([row.gain for row in rows], dtype=np.float64)
        self._mean = float(gain.mean())
        self._weights = solve_ridge(counts.times(self._idf), gain - self._mean, self._ridge)

    def score(self, prompts: Sequence[str]) -> Floats:
        return _Counts(prompts, self._buckets).times(self._idf).of(self._weights) + self._mean


class Sparse:
    """A matrix as triples: entry i stands in row `row[i]` and column `column[i]`. No pair may occur twice."""

    def __init__(self, row: NDArray[np.int64], column: NDArray[np.int64], value: Floats, shape: tuple[int, int]) -> None:
        self.row, self.column, self.value, self.shape = row, column, value, shape

    def of(self, vector: Floats) -> Floats:
        """The matrix times a vector [columns]: [rows]."""
        return np.bincount(self.row, self.value * vector[self.column], self.shape[0]).astype(np.float64, copy=False)

    def transposed_of(self, vector: Floats) -> Floats:
        """The transposed matrix times a vector [rows]: [columns]."""
        return np.bincount(self.column, self.value * vector[self.row], self.shape[1]).astype(np.float64, copy=False)


class _Counts:
    """How often each bucket's terms occur in each text, as triples."""

    def __init__(self, texts: Sequence[str], buckets: int) -> None:
        found = [Counter(zlib.crc32(term.encode()) % buckets for term in _TERM.findall(_readable(text).lower())) for text in texts]
        self.shape = (len(texts), buckets)
        self.row = np.repeat(np.arange(len(texts)), [len(counter) for counter in found])
        self.bucket = np.fromiter((bucket for counter in found for bucket in counter), np.int64, len(self.row))
        self.weight = 1 + np.log(np.fromiter((count for counter in found for count in counter.values()), np.float64, len(self.row)))

    def times(self, idf: Floats) -> Sparse:
        value = self.weight * idf[self.bucket]
        length = np.sqrt(np.bincount(self.row, value**2, self.shape[0]))
        return Sparse(self.row, self.bucket, value / length[self.row], self.shape)


def _readable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # half a surrogate pair has no bytes to hash


def solve_ridge(matrix: Sparse, target: Floats, ridge: float, *, tolerance: float = 1e-6, steps: int = 1000) -> Floats:
    """The w that minimises |matrix w - target|^2 + ridge |w|^2, its residual at most `tolerance` of the right-hand side's length."""
    right = matrix.transposed_of(target)
    weights = np.zeros(matrix.shape[1])
    residual, direction = right.copy(), right.copy()
    square, enough = float(residual @ residual), tolerance**2 * float(right @ right)
    for _ in range(steps):
        if square <= enough:
            break
        image = matrix.transposed_of(matrix.of(direction)) + ridge * direction
        step = square / float(direction @ image)
        weights += step * direction
        residual -= step * image
        previous, square = square, float(residual @ residual)
        direction = residual + square / previous * direction
    return weights
