"""The simulated NPU as an adapter: it computes tile by tile what the chip would, to the interpreter's bits, and counts what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.errors import ArtifactRejected, DoesNotFit, PlanInvalid
from ..base import NOTHING, Artifact, Cost, Plan, Segment, Tiling
from ..cpu.blas import one_blas_thread
from ..ir.op import Op
from ..ir.value import ARRAYS
from ..lowered import pack, unpack
from ..spec import Spec
from ..tile.kernels import kernel_of, nameless
from ..tile.program import Kernel
from .capability import refusal
from .choose import fitting, tiling_of
from .execute import Step, bind, new_workspace, scratch_bytes
from .pipeline import count
from .program import ABI, Program, call_of, check, chip_of
from .record import Record, cost_of, record_of


@dataclass(slots=True)
class Loaded:
    program: Program
    constants: Mapping[str, NDArray[Any]]  # flat
    steps: tuple[tuple[Step, ...], ...]  # of every kernel
    placed: tuple[str, ...]  # values that a run has in its buffers
    buffers: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # those of the last run
    bound: tuple[Bound, ...] = ()  # its calls on them


@dataclass(frozen=True, slots=True)
class Bound:
    """One call with its operands, flat, and what is to be moved first: nothing, where the plan gives views the place of what they view."""

    steps: tuple[Step, ...]
    operands: tuple[NDArray[Any], ...]
    moves: tuple[tuple[NDArray[Any], NDArray[Any]], ...]  # (from, to)


class SystolicAdapter:
    """`spec` is any chip of ../presets, or one of your own."""

    name = "systolic"

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def supports(self, op: Op) -> str | None:
        return refusal(op, self.spec)

    def tiling(self, op: Op) -> Tiling | None:
        """The tiling that takes the fewest cycles; None for an operation that needs none. Raises DoesNotFit."""
        return tiling_of(op, self.spec)

    def cost(self, op: Op, tiling: Tiling | None = None) -> Cost:
        """What `count` says of the operation in a segment. Handing over a segment takes `spec.launch_cycles` more, once."""
        return _cost(nameless(op), tiling or self.tiling(op), self.spec)

    def working_bytes(self, op: Op, tiling: Tiling | None = None) -> int:
        """Of SRAM that the operation's tiles take, two of each where the next one comes in meanwhile."""
        return self._kernel(op, tiling).sram_bytes

    def lower(self, segment: Segment, plan: Plan) -> Artifact:
        """Raises DoesNotFit for an operation that the chip refuses."""
        kernels: dict[Kernel, int] = {}
        calls = []
        for op in segment.graph.ops:
            if reason := self.supports(op):
                raise DoesNotFit(f"{op.kind} {op.name} does not run on {self.spec.name}: {reason}")
            kernel = self._kernel(op, plan.tilings.get(op.name))
            calls.append(call_of(op, kernels.setdefault(kernel, len(kernels))))
        return pack(Program(ABI, segment, plan, chip_of(self.spec), tuple(kernels), tuple(calls)))

    def load(self, artifact: Artifact, constants: Mapping[str, NDArray[Any]]) -> Loaded:
        program = unpack(artifact, ABI, Program)
        check(program, self.spec)
        flat = {}
        for value in program.segment.graph.constants:
            array = constants.get(value.name)
            if array is None or array.shape != value.shape or array.dtype != ARRAYS[value.dtype] or not array.flags.c_contiguous:
                found = "nothing" if array is None else f"{array.dtype} {list(array.shape)}"
                raise ArtifactRejected(f"the constant {value} is needed, there is {found}", hint="the artifact is for another model")
            flat[value.name] = array.reshape(-1)
        sram = np.zeros(max(map(scratch_bytes, program.kernels), default=0), np.uint8)
        space = new_workspace(program.kernels)
        steps = tuple(tuple(bind(kernel, sram, space)) for kernel in program.kernels)
        placed = (value.name for value in program.segment.graph.values() if value.name not in flat)
        return Loaded(program, flat, steps, tuple(placed))

    def run(self, handle: Loaded, buffers: Mapping[str, NDArray[Any]]) -> None:
        """`buffers` has every value that the plan places; while they are the same arrays as before, nothing is looked up again. Raises
        PlanInvalid for one that is missing or not in one piece, InvalidRequest for a row or a position that is not there."""
        if not handle.buffers or any(buffers.get(name) is not last for name, last in handle.buffers.items()):
            handle.bound = _bind(handle, buffers)
            handle.buffers = {name: buffers[name] for name in handle.placed}
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for call in handle.bound:
                for before, after in call.moves:
                    np.copyto(after, before)
                for step in call.steps:
                    step(call.operands)

    def count(self, handle: Loaded) -> Record:
        """What a run takes, from the instructions that it executes."""
        program = handle.program
        counted = [count(kernel, self.spec) for kernel in program.kernels]
        return record_of([(op, counted[call.kernel]) for op, call in zip(program.segment.graph.ops, program.calls, strict=True)], self.spec)

    def _kernel(self, op: Op, tiling: Tiling | None) -> Kernel:
        return kernel_of(op, fitting(op, tiling or self.tiling(op), self.spec))


@lru_cache(maxsize=4096)  # layers are alike
def _cost(op: Op, tiling: Tiling | None, spec: Spec) -> Cost:
    kernel = kernel_of(op, fitting(op, tiling, spec))
    return cost_of(count(kernel, spec), spec) if kernel.instructions else NOTHING


def _bind(handle: Loaded, buffers: Mapping[str, NDArray[Any]]) -> tuple[Bound, ...]:
    known = dict(handle.constants)
    for name in handle.placed:
        array = buffers.get(name)
        if array is None or not array.flags.c_contiguous:
            raise PlanInvalid(f"{name} is placed by the plan, and there is {'no' if array is None else 'a scattered'} buffer for it")
        known[name] = array.reshape(-1)
    bound = []
    for call in handle.program.calls:
        moves = ((known[before], known[after]) for before, after in call.views)
        apart = tuple((before, after) for before, after in moves if _address(before) != _address(after))
        bound.append(Bound(handle.steps[call.kernel], tuple(known[name] for name in call.operands), apart))
    return tuple(bound)


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
