"""A gate: what a signal's value means, learned from outcomes of one model file in one quantisation, for each group of tasks.

A plain JSON file, made by `hybrid route gate`; it holds numbers only. Its calibration id is a hash of all of it and stands in
every decision that the gate had a part in.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ...shared_protocol.bounded_file import read_at_most
from ...shared_protocol.errors import ConfigError, GateMismatch
from ...shared_protocol.model_card import ModelCard
from ..calibration import Calibration
from ..complexity.complexity import Parts
from ..policy.policy import MAX_GATE
from ..policy.tables import ConfidencePolicy, Signal
from .probe import Count, Probe

Unit = Annotated[float, Meta(ge=0, le=1)]
TaskGroup = Literal["code", "text"]
CODE_FROM = 0.2  # of Parts.code: two marks of program text, or as many words of programming
ANY = "any"  # the group for tasks of a kind that was not calibrated apart


class Promise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From `threshold` of the raw signal on, at most `error_rate` of the answers are wrong, but for a chance of `delta` (threshold.py)."""

    error_rate: Unit
    delta: Unit
    threshold: Unit
    kept: Count  # of n outcomes that had no part in choosing the grid
    wrong: Count
    n: Count


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When an answer is given up in mid-text (early.py): at most the share `loss` of right ones is."""

    after: Annotated[int, Meta(ge=1)]  # tokens
    below: Unit
    loss: Unit
    n: Count  # right answers that it was chosen from


class GroupGate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    map: Calibration  # from the raw signal to the probability that the answer is right
    n: Count  # outcomes
    correct: Count
    auroc: Unit  # of the signal: chance that a right answer scores higher than a wrong one
    ece_before: Unit  # expected calibration error of the raw signal ...
    ece_after: Unit  # ... and of the probability, each outcome judged by a map that it had no part in
    promises: tuple[Promise, ...] = ()
    stop: Stop | None = None


class Gate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Literal["hybrid-gate-1"]
    model: str  # its name, for people
    file_hash: str
    quantisation: str
    signal: Signal
    quantile: Unit  # the signal's own parameters
    quantile_weight: Unit
    data_hash: str  # of the outcomes
    groups: dict[str, GroupGate]  # by TaskGroup, or "any"
    probe: Probe | msgspec.UnsetType = msgspec.UNSET  # of the signal "probe", and of no other
    calibration_id: str = ""  # of all the rest; made by `sealed`

    def __post_init__(self) -> None:
        if isinstance(self.probe, Probe) != (self.signal == "probe"):
            raise ValueError("the signal probe comes with a probe, and no other does")

    def sealed(self) -> Gate:
        """With its calibration id: the first 16 hex digits of SHA-256 over its canonical JSON."""
        bare = msgspec.structs.replace(self, calibration_id="")
        digest = hashlib.sha256(msgspec.json.encode(bare, order="sorted")).hexdigest()
        return msgspec.structs.replace(self, calibration_id=digest[:16])

    def group(self, name: TaskGroup) -> GroupGate | None:
        return self.groups.get(name) or self.groups.get(ANY)

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self.sealed()), indent=2) + b"\n"


def task_group(parts: Parts) -> TaskGroup:
    """Whether a conversation is about program text, by what complexity saw in its hardest turn."""
    return "code" if parts.code >= CODE_FROM else "text"


def load_gate(path: str | Path, card: ModelCard, policy: ConfidencePolicy) -> Gate:
    """Read a gate for the model of `card`, judged as `policy` says.

    Raises ConfigError for a file that is none, or was changed by hand, and GateMismatch for one that was calibrated for another model
    file, quantisation or signal: what a number means was learned from that one only.
    """
    try:
        gate = msgspec.json.decode(read_at_most(path, MAX_GATE), type=Gate)
    except OSError as error:
        raise ConfigError(f"gate {path}: {error.strerror or error}", param="confidence.gate", hint="name a readable gate file") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"gate {path}: not a gate: {error}", param="confidence.gate") from None
    if gate.sealed().calibration_id != gate.calibration_id:
        raise ConfigError(f"gate {path}: its numbers are not those of calibration {gate.calibration_id[:16]!r}", param="confidence.gate")
    asked = (card.file_hash, card.quantisation, policy.signal, policy.quantile, policy.quantile_weight)
    found = (gate.file_hash, gate.quantisation, gate.signal, gate.quantile, gate.quantile_weight)
    for what, ours, theirs in zip(_IDENTITY, asked, found, strict=True):
        if ours != theirs:
            raise GateMismatch(
                f"gate {path}: calibrated for {what} {_short(theirs)} ({gate.model}), this is {_short(ours)} ({card.name})",
                param="confidence.gate",
                hint="calibrate a gate for this one, or leave confidence.gate empty",
            )
    return gate


def check_states(gate: Gate | None, policy: ConfidencePolicy, card: ModelCard, hidden_size: int | None) -> None:
    """Raise GateMismatch where the policy judges by a probe that cannot be asked here.

    `hidden_size`: numbers of the hidden states that the device's runtime gives; None: it gives none.
    """
    if policy.signal != "probe":
        return
    if gate is None or not isinstance(gate.probe, Probe):
        raise GateMismatch(_NO_PROBE, param="confidence.gate", hint="make one: hybrid route gate --signal probe")
    if hidden_size is None:
        raise GateMismatch(
            f"the signal probe reads hidden states, and the runtime of {card.name} gives none",
            param="confidence.signal",
            hint="use the native runtime, or another signal",
        )
    if hidden_size != gate.probe.size:
        raise GateMismatch(
            f"the gate's probe reads hidden states of {gate.probe.size} numbers, those of {card.name} have {hidden_size}",
            param="confidence.gate",
        )


_NO_PROBE = "the signal probe needs a gate that holds a probe, and confidence.gate names none"
_IDENTITY = ("the file", "the quantisation", "the signal", "the quantile", "the quantile weight")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:12]}..."
