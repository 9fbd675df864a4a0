"""Makes a gate from outcomes: answers of one model file, right or wrong, with what was behind each of their tokens.

Every figure that stands in the gate is of outcomes that the map it judges had no part in: ten folds for the calibration, and for promises
one half that draws the grid while the other half is tested. A probe is fitted on one half of all outcomes; all that the gate says is of the
other half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.errors import CannotPromise, InvalidRequest
from ...shared_protocol.model_card import ModelCard
from ..calibration import Calibration, fit_isotonic, fit_logistic
from ..evaluate.failures import Failures
from ..evaluate.figure import Floats
from ..evaluate.folds import fold_of
from ..evaluate.reliability import Reliability
from ..policy.tables import ConfidencePolicy
from .early import stop_bound
from .fit_probe import fit_probe
from .gate import Gate, GroupGate, Promise, Stop, TaskGroup
from .probe import Probe, certainty
from .signals import SIGNALS, confidence
from .threshold import promise_by_halves
from .token_signal import TokenSignal

FOLDS = 10
ISOTONIC_FROM = 200  # outcomes; with fewer, a curve of two numbers errs less than one of many
ERROR_RATES = (0.05, 0.1, 0.2, 0.3, 0.4)
DELTA = 0.1
STOP_AFTER, STOP_LOSS = 8, 0.05


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer."""

    id: str
    group: TaskGroup
    correct: bool
    tokens: Sequence[TokenSignal]
    state: NDArray[np.float32] | None = None  # hidden, that the last token was drawn from


def calibrate(rows: Sequence[Judged], card: ModelCard, policy: ConfidencePolicy, data_hash: str) -> Gate:
    """A gate for the policy's signal and the model of `card`. What cannot be promised from so few outcomes is left out.

    Raises InvalidRequest for a signal that is not made of tokens, for a group with fewer than two outcomes per fold, or of which all, or
    none, are right, and for a probe what `fit_probe` does.
    """
    probe, names = None, sorted({row.group for row in rows})  # of all: a group that is in the probe's half alone is refused, not lost
    if policy.signal == "probe":
        half = fold_of([row.id for row in rows], 2)
        probe = probe_of([row for row, part in zip(rows, half, strict=True) if part == 0])
        rows = [row for row, part in zip(rows, half, strict=True) if part == 1]
    elif policy.signal not in SIGNALS:
        hint = ", ".join((*SIGNALS, "probe"))
        raise InvalidRequest(f"{policy.signal} is not made of an answer's tokens", param="confidence.signal", hint=hint)
    groups = {}
    for name in names:
        groups[str(name)] = _group(name, [row for row in rows if row.group == name], policy, probe)
    return Gate(
        format="hybrid-gate-1",
        model=card.name,
        file_hash=card.file_hash,
        quantisation=card.quantisation,
        signal=policy.signal,
        quantile=policy.quantile,
        quantile_weight=policy.quantile_weight,
        data_hash=data_hash,
        groups=groups,
        probe=msgspec.UNSET if probe is None else probe,
    ).sealed()


def probe_of(rows: Sequence[Judged]) -> Probe:
    """Raises InvalidRequest that names the answer at fault, and what `fit_probe` does."""
    states: list[NDArray[np.float32]] = []
    sure: list[float] = []
    for row in rows:
        state, value = row.state, certainty(row.tokens)
        if state is None or value is None or (states and len(state) != len(states[0])):
            hint = "collect outcomes with hidden states, all of one model"
            raise InvalidRequest(f"the answer {row.id!r} has no hidden state like the others, or tokens that cannot be", hint=hint)
        states.append(state)
        sure.append(value)
    return fit_probe([row.id for row in rows], np.array(states, float), np.array(sure), np.array([float(row.correct) for row in rows]))


def _group(name: TaskGroup, rows: Sequence[Judged], policy: ConfidencePolicy, probe: Probe | None) -> GroupGate:
    values, correct = np.array([_value(row, policy, probe) for row in rows]), np.array([float(row.correct) for row in rows])
    right = int(correct.sum())
    if len(rows) < 2 * FOLDS or right in (0, len(rows)):
        raise InvalidRequest(f"{right} right of {len(rows)} answers about {name}", hint=f"{2 * FOLDS} or more, some of them wrong")
    fit = fit_isotonic if len(rows) >= ISOTONIC_FROM else fit_logistic
    once = np.ones((1, len(rows)))
    probability = cross_fitted(fit, [row.id for row in rows], values, correct)
    return GroupGate(
        map=fit(values.tolist(), correct.tolist()),
        n=len(rows),
        correct=right,
        auroc=float(Failures(-values, correct).auroc(once)[0]),
        ece_before=float(Reliability(values, correct).ece(once)[0]),
        ece_after=float(Reliability(probability, correct).ece(once)[0]),
        promises=_promises([row.id for row in rows], values, correct == 0),
        stop=_stop([row for row in rows if row.correct]),
    )


def cross_fitted(
    fit: Callable[[Sequence[float], Sequence[float]], Calibration], ids: Sequence[str], values: Floats, correct: Floats
) -> Floats:
    """[n]: each outcome's probability by a map that was fitted on the other folds."""
    fold, probability = fold_of(ids, FOLDS), np.empty(len(ids))
    for number in range(FOLDS):
        held = fold == number
        found = fit(values[~held].tolist(), correct[~held].tolist())
        probability[held] = [found(value) for value in values[held].tolist()]
    return probability


def _promises(ids: Sequence[str], values: Floats, wrong: np.ndarray) -> tuple[Promise, ...]:
    tested = (fold_of(ids, 2) == 1).tolist()
    found = []
    for rate in ERROR_RATES:
        try:
            kept = promise_by_halves(values.tolist(), wrong.tolist(), tested, error_rate=rate, delta=DELTA)
        except CannotPromise:
            continue
        found.append(Promise(rate, DELTA, kept.threshold, kept.kept, kept.wrong, kept.n))
    return tuple(found)


def _stop(right: Sequence[Judged]) -> Stop | None:
    logprobs = [[token.logprob for token in row.tokens] for row in right]
    try:
        return Stop(STOP_AFTER, stop_bound(logprobs, after=STOP_AFTER, loss=STOP_LOSS), STOP_LOSS, len(right))
    except CannotPromise:
        return None


def _value(row: Judged, policy: ConfidencePolicy, probe: Probe | None) -> float:
    value = confidence(row.tokens, policy) if probe is None else probe(row.state, row.tokens)
    if value is None:
        raise InvalidRequest(f"the answer {row.id!r} has no token, no hidden state that its probe can read, or numbers that cannot be")
    return value
