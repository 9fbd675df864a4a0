"""Which rows are held out when: whole groups of equal prompts, the same on every machine and in any order of the file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.errors import InvalidRequest
from .figure import Floats
from .outcomes import Outcome
from .scorers import Forecaster, Scorer


def fold_of(groups: Sequence[str], folds: int, seed: int = 0) -> NDArray[np.int64]:
    """[n]: the fold 0..folds - 1 of each row. Groups are shuffled by their hash and dealt out, so folds differ by one group at most.

    Raises InvalidRequest where there are fewer groups than folds.
    """
    names = sorted(set(groups), key=lambda group: (hashlib.sha256(f"{seed}:{group}".encode("utf-8", "surrogatepass")).digest(), group))
    if not 2 <= folds <= len(names):
        raise InvalidRequest(
            f"{len(names)} different prompts cannot be dealt to {folds} folds", param="folds", hint="take 2 folds or more, and enough rows"
        )
    fold = {group: place % folds for place, group in enumerate(names)}
    return np.array([fold[group] for group in groups], dtype=np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class HeldOut:
    """Of every row, by a scorer that never saw a row of its fold; each [n]. The forecasts are None where the scorer makes none."""

    scores: Floats
    weak: Floats | None = None
    strong: Floats | None = None


def held_out(make: Callable[[], Scorer], rows: Sequence[Outcome], folds: NDArray[np.int64]) -> HeldOut:
    """`make` gives a fresh scorer for each fold."""
    scores, expected = np.empty(len(rows)), np.full((len(rows), 2), np.nan)
    for number in range(int(folds.max()) + 1):
        scorer = make()
        held = folds == number
        scorer.fit([row for row, out in zip(rows, held, strict=True) if not out])
        prompts = [row.prompt for row, out in zip(rows, held, strict=True) if out]
        scores[held] = scorer.score(prompts)
        if isinstance(scorer, Forecaster):
            expected[held] = scorer.probabilities(prompts)
    return HeldOut(scores, expected[:, 0], expected[:, 1]) if isinstance(scorer, Forecaster) else HeldOut(scores)
