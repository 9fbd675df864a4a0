"""What each model's answer will score, from any scorer: its numbers mapped to expected scores by what rows of the same number reached.

The map is isotonic and fitted on scores of held-out rows: a scorer that learns is surer of the rows it has learned from than of others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..calibration import Isotonic, fit_isotonic
from .figure import Floats
from .folds import fold_of, held_out
from .outcomes import Outcome
from .scorers import Forecaster, Scorer

INNER_FOLDS = 3


class Calibrated:
    """A Forecaster made of a Scorer, with its name and its order. The higher the number, the worse the weak model is taken to be."""

    def __init__(self, make: Callable[[], Scorer]) -> None:
        self._make = make
        self._scorer = make()
        self.name = self._scorer.name
        self._weak: Isotonic | None = None
        self._strong: Isotonic | None = None

    def fit(self, rows: Sequence[Outcome]) -> None:
        """Needs rows of INNER_FOLDS different prompts at least."""
        found = held_out(self._make, rows, fold_of([row.group for row in rows], INNER_FOLDS)).scores
        self._weak = fit_isotonic((-found).tolist(), [row.weak for row in rows])
        self._strong = fit_isotonic((-found).tolist(), [row.strong for row in rows])
        self._scorer.fit(rows)

    def score(self, prompts: Sequence[str]) -> Floats:
        return self._scorer.score(prompts)

    def probabilities(self, prompts: Sequence[str]) -> Floats:
        assert self._weak is not None and self._strong is not None, "fit comes first"
        scores = -self._scorer.score(prompts)
        return np.column_stack([self._weak.many(scores), self._strong.many(scores)])


def forecasting(make: Callable[[], Scorer]) -> Callable[[], Scorer]:
    """`make` itself where it makes forecasters already."""
    return make if isinstance(make(), Forecaster) else lambda: Calibrated(make)
