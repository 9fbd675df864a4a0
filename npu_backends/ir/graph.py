"""A computation as data: operations in the order in which they run. A graph that exists has been verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...shared_protocol.compile_errors import GraphInvalid
from .kinds import KINDS, infer
from .op import Op
from .value import Value


@dataclass(frozen=True, slots=True)
class Graph:
    """Inputs change with every run, constants never. A state is an input that a run overwrites: (name before, name after), the same
    memory; the one before is an input, the one after an output.

    Raises GraphInvalid where a name is used before it is made or made twice, where an operation does not take what it is given or make
    what it says, and where a state is read after it was overwritten.
    """

    name: str
    inputs: tuple[Value, ...]
    constants: tuple[Value, ...]
    ops: tuple[Op, ...]
    outputs: tuple[Value, ...]
    states: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        known: dict[str, Value] = {}
        for value in (*self.inputs, *self.constants):
            make(known, value)
        overwritten: set[str] = set()
        for op in self.ops:
            check_op(op, known, overwritten)
        for value in self.outputs:
            if known.get(value.name) != value:
                raise GraphInvalid(f"the output {value} of {self.name} is not made in it")
        inputs, outputs = {value.name: value for value in self.inputs}, {value.name: value for value in self.outputs}
        for before, after in self.states:
            if before not in inputs or after not in outputs:
                raise GraphInvalid(f"the state ({before}, {after}) of {self.name} is not an input and an output")
            if (inputs[before].shape, inputs[before].dtype) != (outputs[after].shape, outputs[after].dtype):
                raise GraphInvalid(f"the state {inputs[before]} of {self.name} becomes {outputs[after]}")

    def values(self) -> Iterator[Value]:
        """Every value once: inputs, constants, then in the order in which they are made; those inside fused operations are left out."""
        yield from self.inputs
        yield from self.constants
        for op in self.ops:
            yield from op.outputs


def make(known: dict[str, Value], value: Value) -> Value:
    """Add a value to those that are known."""
    if value.name in known:
        raise GraphInvalid(f"{value.name} is made twice")
    return known.setdefault(value.name, value)


def check_op(op: Op, known: dict[str, Value], overwritten: set[str]) -> None:
    """Whether one operation holds together, after those that made what is known. Its outputs are then known too."""
    if not op.outputs:
        raise GraphInvalid(f"an operation {op.kind} makes nothing")
    for value in op.inputs:
        if known.get(value.name) != value:
            raise GraphInvalid(f"{op.kind} {op.name} reads {value}; there is {known.get(value.name, 'nothing of that name')} before it")
        if value.name in overwritten:
            raise GraphInvalid(f"{op.kind} {op.name} reads {value.name} after it was overwritten")
    if op.kind == "fused":
        _check_body(op, known, overwritten)
    else:
        if op.body:
            raise GraphInvalid(f"{op.kind} {op.name} has a body; only a fused operation does")
        made = tuple((value.shape, value.dtype) for value in op.outputs)
        if made != (inferred := infer(op)):
            raise GraphInvalid(f"{op.kind} {op.name} says that it makes {made}; it makes {inferred}")
        place = KINDS[op.kind].overwrites
        if place is not None:
            overwritten.add(op.inputs[place].name)
    for value in op.outputs:
        make(known, value)


def _check_body(op: Op, known: dict[str, Value], overwritten: set[str]) -> None:
    if not op.body or op.attributes:
        raise GraphInvalid(f"the fused operation {op.name} has an empty body, or attributes")
    inside = {value.name: value for value in op.inputs}
    for inner in op.body:
        for value in inner.outputs:
            if value.name in known:
                raise GraphInvalid(f"{value.name} is made inside {op.name} and outside of it")
        check_op(inner, inside, overwritten)
    for value in op.outputs:
        if inside.get(value.name) != value:
            raise GraphInvalid(f"the fused operation {op.name} does not make {value}")


def subgraph(graph: Graph, name: str, ops: Sequence[Op]) -> Graph:
    """Some of a graph's operations, in its order, as a graph of their own: what they read and do not make becomes its inputs, what
    others or the graph's outputs read of theirs its outputs."""
    made = {value.name for op in ops for value in op.outputs}
    read = {value.name: value for op in ops for value in op.inputs if value.name not in made}
    constants = {value.name for value in graph.constants}
    chosen = set(map(id, ops))
    wanted = {value.name for op in graph.ops if id(op) not in chosen for value in op.inputs} | {value.name for value in graph.outputs}
    outputs = {value.name: value for op in ops for value in op.outputs if value.name in wanted}
    return Graph(
        name,
        inputs=tuple(value for value in read.values() if value.name not in constants),
        constants=tuple(value for value in read.values() if value.name in constants),
        ops=tuple(ops),
        outputs=tuple(outputs.values()),
        states=tuple((before, after) for before, after in graph.states if before in read and after in outputs),
    )
