"""What probes say of answers that they were not fitted on (router/confidence/probe.py): with questions of the same kinds among those that
they were, and without."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hybrid.router.confidence.calibrate import Judged, probe_of
from hybrid.router.evaluate.folds import fold_of

FOLDS = 10


def held_out(rows: Sequence[Judged]) -> list[float]:
    """Each answer by a probe that was fitted on the other folds of single answers."""
    return _by_folds(rows, fold_of([row.id for row in rows], FOLDS))


def held_out_kinds(rows: Sequence[Judged]) -> list[float]:
    """Each answer by a probe that was fitted on the other kinds of question; an id begins with its kind: "lcm/3"."""
    kinds = [row.id.split("/")[0] for row in rows]
    return _by_folds(rows, fold_of(kinds, len(set(kinds))))


def _by_folds(rows: Sequence[Judged], fold: np.ndarray) -> list[float]:
    said: list[float] = [0.0] * len(rows)
    for number in range(int(fold.max()) + 1):
        probe = probe_of([row for row, part in zip(rows, fold, strict=True) if part != number])
        for at in np.flatnonzero(fold == number):
            value = probe(rows[at].state, rows[at].tokens)
            assert value is not None, rows[at].id
            said[at] = value
    return said
