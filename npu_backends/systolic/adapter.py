"""The simulated NPU as an adapter: it computes tile by tile what the chip would, to the interpreter's bits, and counts what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from ...shared_protocol.compile_errors import DoesNotFit
from ..base import NOTHING, Artifact, Cost, Plan, Segment, Tiling
from ..cpu.blas import one_blas_thread
from ..ir.op import Op
from ..lowered import pack, unpack
from ..spec import Spec
from ..tile.calls import Calls, call_of, calls_of, flat_constants
from ..tile.kernels import kernel_of, nameless
from ..tile.program import Kernel
from ..tile.room import Room, Shared, own_room, room_for
from .capability import refusal
from .choose import fitting, tiling_of
from .pipeline import count
from .program import ABI, Program, check, chip_of
from .record import Record, cost_of, record_of


@dataclass(frozen=True, slots=True)
class Loaded:
    program: Program
    calls: Calls
    own: Room | None  # None: the plan's


class SystolicAdapter:
    """`spec` is any chip of ../presets, or one of your own."""

    name = "systolic"

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._shared = Shared()

    def supports(self, op: Op) -> str | None:
        return refusal(op, self.spec)

    def tiling(self, op: Op) -> Tiling | None:
        """The tiling that takes the fewest cycles; None for an operation that needs none. Raises DoesNotFit."""
        return tiling_of(op, self.spec)

    def cost(self, op: Op, tiling: Tiling | None = None) -> Cost:
        """What `count` says of the operation in a segment. Handing over a segment takes `spec.launch_cycles` more, once."""
        return _cost(nameless(op), tiling or self.tiling(op), self.spec)

    def hidden_dma(self, op: Op, tiling: Tiling | None = None) -> float:
        """The part of the operation's transfers that costs no time, 0 to 1."""
        return count(self._kernel(op, tiling), self.spec).hidden_dma

    def working_bytes(self, op: Op, tiling: Tiling | None = None) -> int:
        """Of SRAM that the operation's tiles take, two of each where the next one comes in meanwhile."""
        return self._kernel(op, tiling).sram_bytes

    def scratch_bytes(self, segment: Segment, tilings: Mapping[str, Tiling]) -> int:
        """Of the host's memory that the simulation computes in: what is on the chip at a time, and floats of its codes."""
        return room_for(self._kernel(op, tilings.get(op.name)) for op in segment.graph.ops)

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
        graph = program.segment.graph
        flat = flat_constants(graph, constants)
        room = own_room(program.plan, program.kernels)
        return Loaded(program, calls_of(graph, program.calls, program.kernels, flat), room)

    def run(self, handle: Loaded, buffers: Mapping[str, NDArray[Any]]) -> None:
        """`buffers` has every value that the plan places. Raises PlanInvalid for one that is missing or not in one piece, InvalidRequest
        for a row or a position that is not there."""
        with one_blas_thread():
            handle.calls.run(buffers, handle.own or self._shared.room(buffers))

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
