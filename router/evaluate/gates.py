"""Gates for a pipeline: 'cloud_share > 0.4' says what must not be. One name, one comparison, one number or percentage; nothing else.

A gate on a figure that is undefined fails: what could not be measured has not passed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ...shared_protocol.errors import InvalidRequest
from .figure import Figure, Undefined

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_GATE = re.compile(r"\s*([a-z][a-z0-9_.-]*)\s*(>=|<=|==|!=|>|<)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*(%?)\s*")


@dataclass(frozen=True, slots=True)
class Gate:
    """Fails where `name compare limit` is true."""

    text: str
    name: str
    compare: str
    limit: float


@dataclass(frozen=True, slots=True)
class Judged:
    gate: Gate
    value: Figure
    failed: bool

    def sentence(self) -> str:
        if isinstance(self.value, Undefined):
            return f"{self.gate.text}: failed, since {self.gate.name} is undefined: {self.value.why}"
        return f"{self.gate.text}: {'failed' if self.failed else 'passed'}, {self.gate.name} is {self.value:.4g}"

    def to_dict(self) -> dict[str, object]:
        value = None if isinstance(self.value, Undefined) else self.value
        return {"gate": self.gate.text, "value": value, "failed": self.failed}


def parse_gate(text: str) -> Gate:
    """Raises InvalidRequest for anything but NAME OP NUMBER, such as 'cloud_share > 40%'."""
    found = _GATE.fullmatch(text)
    if found is None:
        raise InvalidRequest(
            f"a gate is a name, one of {' '.join(_COMPARE)}, and a number, found {text[:80]!r}",
            param="fail-if",
            hint="such as 'cloud_share > 0.4' or 'changed > 5%'",
        )
    name, compare, number, percent = found.groups()
    return Gate(text.strip(), name, compare, float(number) / (100 if percent else 1))


def check_names(gates: Sequence[Gate], names: Collection[str]) -> None:
    """Raises InvalidRequest for a gate on a figure that this command does not have: a typing error must not pass for a success."""
    for gate in gates:
        if gate.name not in names:
            raise InvalidRequest(f"no figure is called {gate.name!r}", param="fail-if", hint="there are " + ", ".join(names))


def judge(gates: Sequence[Gate], figures: Mapping[str, Figure]) -> list[Judged]:
    check_names(gates, figures)
    return [_judge(gate, figures[gate.name]) for gate in gates]


def _judge(gate: Gate, value: Figure) -> Judged:
    return Judged(gate, value, isinstance(value, Undefined) or _COMPARE[gate.compare](value, gate.limit))
