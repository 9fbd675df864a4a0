"""One operation: what it does, on which values, with which constants of its own."""

from __future__ import annotations

from dataclasses import dataclass

from ...shared_protocol.compile_errors import GraphInvalid
from .value import Value

Attribute = int | float | str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Op:
    """`kind` names a row of KINDS, which says what inputs, outputs and attributes it has. A "fused" one has a body instead: operations
    that run as one, whose values between them never leave the chip.
    """

    kind: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()  # sorted by name
    body: tuple[Op, ...] = ()

    @property
    def name(self) -> str:
        """Its first output's name, which no other operation of the graph has."""
        return self.outputs[0].name

    def __getitem__(self, attribute: str) -> Attribute:
        for name, value in self.attributes:
            if name == attribute:
                return value
        raise GraphInvalid(f"{self.kind} {self.name} has no attribute {attribute!r}")

    def get(self, attribute: str, default: Attribute) -> Attribute:
        return dict(self.attributes).get(attribute, default)

    def integer(self, attribute: str) -> int:
        value = self[attribute]
        if not isinstance(value, int):
            raise GraphInvalid(f"{attribute} of {self.kind} {self.name} is {value!r}, not a whole number")
        return value

    def number(self, attribute: str, default: float | None = None) -> float:
        value = self[attribute] if default is None else self.get(attribute, default)
        if not isinstance(value, int | float):
            raise GraphInvalid(f"{attribute} of {self.kind} {self.name} is {value!r}, not a number")
        return float(value)


def fused(body: tuple[Op, ...], outputs: tuple[Value, ...]) -> Op:
    """Operations as one. Inputs are what the body reads and does not make, in order of first use."""
    made = {value.name for op in body for value in op.outputs}
    inputs = {value.name: value for op in body for value in op.inputs if value.name not in made}
    return Op("fused", tuple(inputs.values()), outputs, body=body)


def flat(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operations with every fused one replaced by its body."""
    return tuple(inner for op in ops for inner in (flat(op.body) if op.kind == "fused" else (op,)))
