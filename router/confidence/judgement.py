"""What becomes of a device's answer: kept, or not, and in which of the ways in which it can be not kept.

passed             the confidence reaches what the policy asks for
below_threshold    it does not
stopped_early      it was given up in mid-text, since answers that begin so are hardly ever right (early.py)
unavailable        there is no confidence: no token probabilities, or the gate that the policy names does not fit the model
skipped            the policy asks for none
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..calibration import Logistic
from ..policy.tables import ConfidencePolicy
from .gate import Gate, GroupGate, TaskGroup

GateState = Literal["passed", "below_threshold", "stopped_early", "unavailable", "skipped"]


@dataclass(frozen=True, slots=True)
class Judgement:
    state: GateState
    confidence: float | None  # 0..1: the probability of being right with a gate, else the raw signal
    rule: str  # the policy's key that settled it
    why: str  # one sentence, without any word of the answer
    calibration_id: str | None = None

    @property
    def keeps(self) -> bool:
        return self.state in ("passed", "skipped")


def judge(value: float | None, policy: ConfidencePolicy, gate: Gate | str | None, group: TaskGroup) -> Judgement:
    """Judge by the raw signal's value, 0..1; None or NaN when there is none. Never raises.

    `gate`: the one that the policy names, or why it cannot be used; None when it names none.
    """
    if policy.signal == "none":
        return Judgement("skipped", None, "confidence.signal", "the policy keeps the device's answer without judging it")
    if isinstance(gate, str):
        return Judgement("unavailable", None, "confidence.gate", f"the device's answer cannot be judged: {gate}: the cloud answers")
    if value is None or not math.isfinite(value):
        return Judgement("unavailable", None, "confidence.signal", "the device's answer brought no confidence: the cloud answers")
    if gate is None:
        return _settled(value, value, policy.threshold, "confidence.threshold", None)
    calibrated = gate.group(group)
    if calibrated is None:
        why = f"the gate knows nothing of {group}: the cloud answers"
        return Judgement("unavailable", None, "confidence.gate", why, gate.calibration_id)
    probability = calibrated.map(value)
    if policy.error_rate == 0:
        return _settled(probability, probability, policy.threshold, "confidence.threshold", gate.calibration_id)
    promised = promised_threshold_of(calibrated, policy.error_rate)
    if promised is None:
        why = f"the gate promises no error rate of {policy.error_rate:.0%} or less for {group}: the cloud answers"
        return Judgement("unavailable", probability, "confidence.error_rate", why, gate.calibration_id)
    return _settled(probability, value, promised, "confidence.error_rate", gate.calibration_id)


def out_of_reach(best: float | None, tokens: int, policy: ConfidencePolicy, gate: Gate | None, group: TaskGroup) -> Judgement | None:
    """The judgement of an answer whose signal can be no better than `best` any more, when that is not enough; else None."""
    if best is None or policy.signal == "none" or _may_fall(gate, group):
        return None
    found = judge(best, policy, gate, group)
    if found.state != "below_threshold":
        return None
    why = f"the device's answer could not reach what the policy asks for any more after {tokens} tokens: the cloud answers"
    return Judgement("stopped_early", None, found.rule, why, found.calibration_id)


def _may_fall(gate: Gate | None, group: TaskGroup) -> bool:
    """Whether a better signal may mean a worse probability, as a map can find where a signal predicts the opposite."""
    calibrated = None if gate is None else gate.group(group)
    return calibrated is not None and isinstance(calibrated.map, Logistic) and calibrated.map.slope < 0


def stopped(tokens: int, gate: Gate | None, group: TaskGroup) -> Judgement:
    """Of an answer that was given up in mid-text, after so many tokens."""
    own = gate is not None and (calibrated := gate.group(group)) is not None and calibrated.stop is not None
    why = f"the device's answer was given up after {tokens} tokens, which right ones hardly ever begin with: the cloud answers"
    rule = "confidence.gate" if own else "confidence.stop_below"
    return Judgement("stopped_early", None, rule, why, gate.calibration_id if gate is not None else None)


def promised_threshold_of(calibrated: GroupGate, error_rate: float) -> float | None:
    """The lowest threshold among the promises of this error rate or a lower one."""
    return min((promise.threshold for promise in calibrated.promises if promise.error_rate <= error_rate), default=None)


def _settled(shown: float, value: float, bar: float, rule: str, calibration_id: str | None) -> Judgement:
    """`shown`: the confidence to report; `value` is what the bar is about, which for a promise is the raw signal."""
    scale = f"confidence {shown:.2f}" if shown == value else f"probability {shown:.2f} of being right, by a signal of {value:.2f}"
    if value >= bar:
        return Judgement("passed", shown, rule, f"the device's answer has {scale}, {bar:.2f} is enough", calibration_id)
    return Judgement("below_threshold", shown, rule, f"the device's answer has {scale}, below {bar:.2f}: the cloud answers", calibration_id)
