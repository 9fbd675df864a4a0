"""Fits a probe: a ridge regression of right and wrong on hidden states, in which the certainty of the tokens is not held to zero.

    right = mean + b * certainty + z . w        z: states in standard deviations; |w|^2 costs `ridge` times their number

The certainty is taken out of both sides first (Frisch and Waugh 1933; Lovell 1963), then one singular value decomposition serves every
ridge. The ridge is the one that errs least on folds held out; what it says of those folds becomes log-odds by a logistic map (Platt): the
probability is that of answers it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...shared_protocol.errors import InvalidRequest
from ..calibration import fit_logistic
from ..evaluate.figure import Floats
from ..evaluate.folds import fold_of
from .probe import Probe

FOLDS = 5
LEAST = 40  # answers
RIDGES = (0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True, slots=True)
class _Fitted:
    mean: float
    slope: float  # of the certainty
    weights: Floats  # [size]

    def __call__(self, states: Floats, certainty: Floats) -> Floats:
        found: Floats = self.mean + self.slope * certainty + states @ self.weights
        return found


def fit_probe(ids: Sequence[str], states: Floats, certainty: Floats, correct: Floats) -> Probe:
    """states [n, size], certainty [n] (probe.certainty), correct [n] of 0 and 1.

    Raises InvalidRequest for fewer than 40 answers, for such of which all or none are right, for numbers that are not finite, and where
    what the probe says of answers held out is no better than chance.
    """
    n, right = len(ids), int(correct.sum())
    if n < LEAST or right in (0, n):
        raise InvalidRequest(f"{right} right of {n} answers to fit a probe on", hint=f"{LEAST} or more, some of them wrong")
    if not (np.isfinite(states).all() and np.isfinite(certainty).all()):
        raise InvalidRequest("hidden states and log-probabilities must be finite numbers")
    said = np.empty((len(RIDGES), n))  # of each answer, by what was fitted without its fold
    fold = fold_of(ids, FOLDS)
    for number in range(FOLDS):
        held = fold == number
        for at, fitted in enumerate(_fits(states[~held], certainty[~held], correct[~held])):
            said[at, held] = fitted(states[held], certainty[held])
    best = int(np.argmin(((said - correct) ** 2).mean(axis=1)))
    odds = fit_logistic(said[best].tolist(), correct.tolist())
    if odds.slope <= 0:
        raise InvalidRequest("a probe on these hidden states is no better than chance for answers it has not seen", hint="collect more")
    whole = _fits(states, certainty, correct)[best]
    return Probe(
        weights=(odds.slope * whole.weights).astype("<f4").tobytes(),
        certainty=odds.slope * whole.slope,
        bias=odds.slope * whole.mean + odds.intercept,
        ridge=RIDGES[best],
        n=n,
        correct=right,
    )


def _fits(states: Floats, certainty: Floats, correct: Floats) -> list[_Fitted]:
    """One for each of RIDGES."""
    centre, scale = states.mean(axis=0), states.std(axis=0)
    scale = np.where(scale > 1e-6, scale, np.inf)  # a number that never changes says nothing
    z, sure, y = (states - centre) / scale, certainty - certainty.mean(), correct - correct.mean()
    length = float(sure @ sure) or 1.0
    rest, rest_y = z - np.outer(sure, sure @ z / length), y - sure * (sure @ y / length)
    left, values, right = np.linalg.svd(rest, full_matrices=False)
    found = []
    for ridge in RIDGES:
        weights = right.T @ (values / (values**2 + ridge * states.shape[1]) * (left.T @ rest_y))
        slope = float(sure @ (y - z @ weights)) / length
        weights = weights / scale
        mean = float(correct.mean() - slope * certainty.mean() - centre @ weights)
        found.append(_Fitted(mean, slope, weights))
    return found
