"""Which rows are held out when: whole groups of equal prompts, the same on every machine and in any order of the file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.errors import InvalidRequest
from .figure import Floats
from .outcomes import Outcome
from .scorers import Scorer


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


def held_out_scores(make: Callable[[], Scorer], rows: Sequence[Outcome], folds: NDArray[np.int64]) -> Floats:
    """[n]: each row's score by a scorer of its own fold that never saw a row of that fold."""
    scores = np.empty(len(rows))
    for number in range(int(folds.max()) + 1):
        scorer = make()
        scorer.fit([row for row, fold in zip(rows, folds, strict=True) if fold != number])
        held = folds == number
        scores[held] = scorer.score([row.prompt for row, out in zip(rows, held, strict=True) if out])
    return scores
