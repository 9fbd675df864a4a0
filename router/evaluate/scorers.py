"""Routers under test, and the baselines that every learned one is printed beside.

APGR (see `curve`) over five folds grouped by prompt, on the public outcomes of Mixtral-8x7B or GPT-4 on GSM8K and of an 8B or a 51B
model on mixed tasks: length .601 and .614; the ridge .607 and .751 on average, by luck of the folds .02 more or less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .outcomes import Outcome
from .rows import group_of
from .tfidf_ridge import TfidfRidge

Scores = NDArray[np.float64]


class Scorer(Protocol):
    """Gives each prompt a number: the higher, the rather the strong model. Only the order of the numbers counts."""

    name: str

    def fit(self, rows: Sequence[Outcome]) -> None:
        """Learn from these rows only. A scorer that learns nothing ignores them."""

    def score(self, prompts: Sequence[str]) -> Scores:
        """float64 [len(prompts)], finite; equal prompts get equal numbers."""


@runtime_checkable
class Forecaster(Scorer, Protocol):
    """A scorer that also says how good each model's answer will be, calibrated: what ECE and the Brier score judge."""

    def probabilities(self, prompts: Sequence[str]) -> Scores:
        """[len(prompts), 2]: the expected scores of the weak and of the strong model, 0..1. After `fit`."""


class Random:
    """A number drawn for each prompt: what no knowledge at all gives. Its APGR is .5 but for the luck of the draw."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def fit(self, rows: Sequence[Outcome]) -> None:
        pass

    def score(self, prompts: Sequence[str]) -> Scores:
        return np.array([self._draw(prompt) for prompt in prompts], dtype=np.float64)

    def _draw(self, prompt: str) -> float:
        digest = hashlib.sha256(f"{self._seed}:{group_of(prompt)}".encode()).digest()
        return int.from_bytes(digest[:6], "little") / 2**48


class Length:
    """Characters of the prompt: the baseline that published routers often fail to beat."""

    name = "length"

    def fit(self, rows: Sequence[Outcome]) -> None:
        pass

    def score(self, prompts: Sequence[str]) -> Scores:
        return np.array([len(prompt) for prompt in prompts], dtype=np.float64)


class Oracle:
    """Knows what each model will make of the very prompt: no router can be better. It must be given the rows it is measured on."""

    name = "oracle"

    def __init__(self, rows: Sequence[Outcome]) -> None:
        gains: dict[str, list[float]] = {}
        for row in rows:
            gains.setdefault(group_of(row.prompt), []).append(row.gain)
        self._gain = {group: float(np.mean(found)) for group, found in gains.items()}

    def fit(self, rows: Sequence[Outcome]) -> None:
        pass

    def score(self, prompts: Sequence[str]) -> Scores:
        return np.array([self._gain[group_of(prompt)] for prompt in prompts], dtype=np.float64)


def baselines(rows: Sequence[Outcome]) -> dict[str, Callable[[], Scorer]]:
    """By name, how to make each. `rows`: those that they will be measured on, which the oracle must know."""
    return {"random": Random, "length": Length, "tfidf_ridge": TfidfRidge, "oracle": lambda: Oracle(rows)}
