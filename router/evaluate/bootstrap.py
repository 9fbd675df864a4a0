"""How far a figure would move on other prompts of the same kind: percentile intervals over resampled groups of rows.

Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapters 13 and 16. Whole groups of equal prompts are drawn, since
rows of one group are not independent. Two figures are compared on the same resamples: what moves both of them cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .figure import Floats, Interval, Undefined

RESAMPLES = 1000
CHUNK = 250  # resamples at once: memory for CHUNK * rows numbers
LEVEL = 0.95

Measure = Callable[[Floats], Mapping[str, Floats]]  # weights [b, n] -> figures by name, each [b], NaN where undefined


@dataclass(frozen=True, eq=False, slots=True)
class Measured:
    """`value`: each figure on the rows as they are. `resampled`: the same on every resample, [resamples]."""

    value: Mapping[str, float]
    resampled: Mapping[str, Floats]

    def interval(self, name: str) -> Interval:
        return interval(self.resampled[name])

    def difference(self, one: str, other: str) -> tuple[float, Interval]:
        """`one` - `other`, and the interval of that difference over equal resamples."""
        return self.value[one] - self.value[other], interval(self.resampled[one] - self.resampled[other])


def measure(groups: Sequence[str], figures: Measure, *, resamples: int = RESAMPLES, seed: int = 0) -> Measured:
    """Every figure of `figures` on the rows, and on resamples of their groups."""
    value = {name: float(found[0]) for name, found in figures(np.ones((1, len(groups)))).items()}
    parts = [figures(weights) for weights in resample(groups, resamples, seed)]
    return Measured(value, {name: np.concatenate([part[name] for part in parts]) for name in value})


def resample(groups: Sequence[str], resamples: int, seed: int) -> Iterator[Floats]:
    """Weights [up to CHUNK, n]: how often each row occurs when as many groups are drawn, with replacement, as there are."""
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    random = np.random.default_rng(seed)
    for start in range(0, resamples, CHUNK):
        drawn = random.integers(0, len(names), size=(min(CHUNK, resamples - start), len(names)))
        yield np.array([np.bincount(draw, minlength=len(names)) for draw in drawn], dtype=np.float64)[:, group]


def interval(values: Floats, level: float = LEVEL) -> Interval:
    """The middle `level` of the values; undefined when the figure is, on the rows of any resample."""
    missing = int(np.isnan(values).sum())
    if missing:
        return Undefined(f"undefined on {missing} of {len(values)} resamples")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
