"""Which values each operation of a segment runs its kernel on, and a run of all of them. Operations of the same shape share a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from ...shared_protocol.compile_errors import ArtifactRejected, PlanInvalid
from ..ir.graph import Graph
from ..ir.op import Op, flat
from ..ir.semantics import Array
from ..ir.value import ARRAYS
from .execute import Step
from .program import Kernel
from .room import Room, room_for


class Call(msgspec.Struct, frozen=True, array_like=True):
    kernel: int
    operands: tuple[str, ...]  # values by name: inputs, then outputs
    views: tuple[tuple[str, str], ...]  # (before, after): the same memory in a good plan; else what is there is moved first


def call_of(op: Op, kernel: int) -> Call:
    operands = tuple(value.name for value in (*op.inputs, *op.outputs))
    views = [
        (inner.inputs[0].name, inner.outputs[0].name)
        for inner in flat((op,))
        if inner.kind == "cache_write" or (inner.kind == "reshape" and op.kind != "fused")
    ]
    return Call(kernel, operands, tuple(view for view in views if set(view) <= set(operands)))


@dataclass(frozen=True, slots=True)
class Bound:
    """One call with its operands, flat, and what is to be moved first: nothing, where the plan gives views the place of what they view."""

    steps: tuple[Step, ...]
    operands: tuple[Array, ...]
    moves: tuple[tuple[Array, Array], ...]  # (from, to)


@dataclass(slots=True)
class Calls:
    """A segment's calls. While a run's room and buffers are the same as before, nothing is looked up again."""

    calls: tuple[Call, ...]
    kernels: tuple[Kernel, ...]
    constants: Mapping[str, Array]  # flat
    placed: tuple[str, ...]  # values that a run has in its buffers
    room: Room | None = None  # of the last run
    buffers: Mapping[str, Array] = field(default_factory=dict)
    bound: tuple[Bound, ...] = ()  # its calls on them

    def run(self, buffers: Mapping[str, Array], room: Room) -> None:
        """Raises PlanInvalid for a buffer that is missing or not in one piece, InvalidRequest for a row or a position that is not
        there."""
        if room is not self.room or any(buffers.get(name) is not last for name, last in self.buffers.items()):
            self.bound = self._bind(buffers, room)
            self.buffers, self.room = {name: buffers[name] for name in self.placed}, room
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for call in self.bound:
                for before, after in call.moves:
                    np.copyto(after, before)
                for step in call.steps:
                    step(call.operands)

    def _bind(self, buffers: Mapping[str, Array], room: Room) -> tuple[Bound, ...]:
        if len(room.scratch) < (needed := room_for(self.kernels)):
            raise PlanInvalid(f"the scratch has {len(room.scratch)} bytes, and the segment needs {needed}")
        known = dict(self.constants)
        for name in self.placed:
            array = buffers.get(name)
            if array is None or not array.flags.c_contiguous:
                raise PlanInvalid(f"{name} is placed by the plan, and there is {'no' if array is None else 'a scattered'} buffer for it")
            known[name] = array.reshape(-1)
        bound = []
        for call in self.calls:
            moves = ((known[before], known[after]) for before, after in call.views)
            apart = tuple((before, after) for before, after in moves if _address(before) != _address(after))
            bound.append(Bound(room.steps_of(self.kernels[call.kernel]), tuple(known[name] for name in call.operands), apart))
        return tuple(bound)


def calls_of(graph: Graph, calls: Sequence[Call], kernels: Sequence[Kernel], constants: Mapping[str, Array]) -> Calls:
    """`constants`: as flat_constants gives them."""
    return Calls(tuple(calls), tuple(kernels), constants, tuple(value.name for value in graph.values() if value.name not in constants))


def flat_constants(graph: Graph, constants: Mapping[str, Array]) -> dict[str, Array]:
    """Those of a graph, not copied. Raises ArtifactRejected for one that is missing or of another form."""
    flattened = {}
    for value in graph.constants:
        array = constants.get(value.name)
        if array is None or array.shape != value.shape or array.dtype != ARRAYS[value.dtype] or not array.flags.c_contiguous:
            found = "nothing" if array is None else f"{array.dtype} {list(array.shape)}"
            raise ArtifactRejected(f"the constant {value} is needed, there is {found}", hint="the artifact is for another model")
        flattened[value.name] = array.reshape(-1)
    return flattened


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
