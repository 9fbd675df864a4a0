"""The host's processor as an adapter: it takes every operation, and so it runs what a chip refuses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ...shared_protocol.compile_errors import ArtifactRejected
from ..base import Artifact, Cost, Plan, Segment, Tiling
from ..ir.graph import Graph
from ..ir.op import Op
from ..ir.work import work_of
from ..lowered import Lowered, pack, unpack
from ..spec import Spec
from ..tile.calls import Calls, call_of, calls_of, flat_constants
from ..tile.kernels import kernel_of, refusal
from ..tile.program import Kernel
from ..tile.room import Room, Shared, own_room, room_for
from .blas import one_blas_thread
from .tiles import tiling_of

ABI = "cpu-1"


@dataclass(frozen=True, slots=True)
class Loaded:
    graph: Graph
    calls: Calls
    own: Room | None  # None: the plan's


class CpuAdapter:
    """Computes as the reference interpreter does, to the bit, into planned buffers: the same kernels as on a chip, in tiles of its own
    choice."""

    name = "cpu"

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._shared = Shared()

    def supports(self, op: Op) -> str | None:
        return refusal(op)

    def cost(self, op: Op, tiling: Tiling | None = None) -> Cost:
        """A roofline: the products and the other arithmetic one after the other, or the bytes, whichever takes longer."""
        work, spec = work_of(op), self.spec
        moved = work.bytes_in + work.bytes_weights + work.bytes_out
        compute = work.macs / spec.array.macs_per_cycle + work.elementwise / spec.vector_lanes
        energy = spec.energy.pj_per_mac * (work.macs + work.elementwise) + spec.energy.pj_per_dram_byte * moved
        return Cost(math.ceil(max(compute, moved / spec.dram.sustained_bytes_per_cycle)), moved, energy * 1e-12)

    def scratch_bytes(self, segment: Segment, tilings: Mapping[str, Tiling]) -> int:
        return room_for(self._kernel(op) for op in segment.graph.ops)

    def lower(self, segment: Segment, plan: Plan) -> Artifact:
        return pack(Lowered(ABI, segment, plan))

    def load(self, artifact: Artifact, constants: Mapping[str, NDArray[Any]]) -> Loaded:
        lowered = unpack(artifact, ABI, Lowered)
        graph = lowered.segment.graph
        flat = flat_constants(graph, constants)
        if reasons := [reason for op in graph.ops if (reason := self.supports(op))]:
            raise ArtifactRejected(f"the processor does not take what the artifact has: {reasons[0]}", hint="compile again")
        kernels: dict[Kernel, int] = {}
        calls = [call_of(op, kernels.setdefault(self._kernel(op), len(kernels))) for op in graph.ops]
        return Loaded(graph, calls_of(graph, calls, tuple(kernels), flat), own_room(lowered.plan, kernels))

    def run(self, handle: Loaded, buffers: Mapping[str, NDArray[Any]]) -> None:
        """Raises PlanInvalid for a buffer that is missing or not in one piece, InvalidRequest for a row or a position that is not there."""
        with one_blas_thread():
            handle.calls.run(buffers, handle.own or self._shared.room(buffers))

    def _kernel(self, op: Op) -> Kernel:
        return kernel_of(op, tiling_of(op, self.spec))
