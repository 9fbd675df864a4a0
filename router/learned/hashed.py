"""Words as numbers: hashed TF-IDF, and a ridge regression that needs no matrix.

x(text)[h] = (1 + ln count) * idf(h), h = CRC-32 of a word or sign modulo the buckets, scaled to length 1
idf(h)     = ln((1 + texts) / (1 + texts with h)) + 1
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

BUCKETS = 4096
OPENING, CLOSING = 3, 4  # terms
TERM = re.compile(r"[^\W_]+|[^\w\s]|_")

Floats = NDArray[np.float64]


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


def bucket_of(term: str, buckets: int = BUCKETS) -> int:
    """`term` in lower case."""
    return zlib.crc32(term.encode()) % buckets


def terms_of(text: str) -> list[str]:
    """Words, numbers and signs, in lower case."""
    return TERM.findall(text.encode("utf-8", "replace").decode().lower())  # half a surrogate pair has no bytes to hash


def marked_terms_of(text: str) -> list[str]:
    """The same, and once more where they open or close the text: how a prompt begins and ends tells the kind of task."""
    terms = terms_of(text)
    if not terms:
        return []
    opening = [f"^{place}{term}" for place, term in enumerate(terms[:OPENING])]
    closing = [f"${place}{term}" for place, term in enumerate(reversed(terms[-CLOSING:]))]
    return [*terms, *opening, *closing, "^" + " ".join(terms[:2])]


class Counts:
    """How often each bucket's terms occur in each text, as triples."""

    def __init__(self, row: NDArray[np.int64], bucket: NDArray[np.int64], weight: Floats, shape: tuple[int, int]) -> None:
        self.row, self.bucket, self.weight, self.shape = row, bucket, weight, shape

    @classmethod
    def of(cls, texts: Sequence[str], buckets: int = BUCKETS, terms: Callable[[str], list[str]] = terms_of) -> Counts:
        found = [_buckets(terms(text), buckets) for text in texts]
        row = np.repeat(np.arange(len(texts)), [len(counts) for counts in found])
        bucket = np.fromiter((bucket for counts in found for bucket in counts), np.int64, len(row))
        times = np.fromiter((count for counts in found for count in counts.values()), np.float64, len(row))
        return cls(row, bucket, 1 + np.log(times), (len(texts), buckets))

    def only(self, rows: NDArray[np.bool_]) -> Counts:
        """Those texts where `rows` [n] is true, in order."""
        kept = rows[self.row]
        place = np.cumsum(rows) - 1
        return Counts(place[self.row[kept]], self.bucket[kept], self.weight[kept], (int(rows.sum()), self.shape[1]))

    def idf(self) -> Floats:
        seen = np.bincount(self.bucket, minlength=self.shape[1])
        found: Floats = np.log((1 + self.shape[0]) / (1 + seen)) + 1
        return found

    def times(self, idf: Floats) -> Sparse:
        value = self.weight * idf[self.bucket]
        length = np.sqrt(np.bincount(self.row, value**2, self.shape[0]))
        return Sparse(self.row, self.bucket, value / length[self.row], self.shape)


def _buckets(terms: list[str], buckets: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for term, count in Counter(terms).items():
        bucket = zlib.crc32(term.encode()) % buckets
        found[bucket] = found.get(bucket, 0) + count
    return found


def solve_ridge(
    matrix: Sparse,
    target: Floats,
    ridge: float,
    *,
    without: Callable[[Floats], Floats] = lambda rows: rows,
    tolerance: float = 1e-6,
    steps: int = 1000,
) -> Floats:
    """The w that minimises |matrix w - target|^2 + ridge |w|^2, its residual at most `tolerance` of the right-hand side's length.

    By conjugate gradients (Hestenes and Stiefel 1952). `without` [rows] to [rows] takes out of a vector what other columns, solved for
    elsewhere, explain of it: a symmetric linear map with eigenvalues 0..1.
    """
    right = matrix.transposed_of(without(target))
    weights = np.zeros(matrix.shape[1])
    residual, direction = right.copy(), right.copy()
    square, enough = float(residual @ residual), tolerance**2 * float(right @ right)
    for _ in range(steps):
        if square <= enough:
            break
        image = matrix.transposed_of(without(matrix.of(direction))) + ridge * direction
        step = square / float(direction @ image)
        weights += step * direction
        residual -= step * image
        previous, square = square, float(residual @ residual)
        direction = residual + square / previous * direction
    return weights
