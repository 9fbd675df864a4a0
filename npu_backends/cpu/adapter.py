"""The host's processor as an adapter: it takes every operation, and so it runs what a chip refuses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.errors import ArtifactRejected
from ..base import Artifact, Cost, Plan, Segment, Tiling
from ..ir.graph import Graph
from ..ir.op import Op, flat
from ..ir.semantics import SEMANTICS
from ..ir.work import work_of
from ..lowered import Lowered, pack, unpack
from ..spec import Spec
from .blas import one_blas_thread

ABI = "cpu-1"


@dataclass(frozen=True, slots=True)
class Loaded:
    graph: Graph
    constants: Mapping[str, NDArray[Any]]


class CpuAdapter:
    """Computes as the reference interpreter does, to the bit, into planned buffers."""

    name = "cpu"

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    def supports(self, op: Op) -> str | None:
        missing = [inner.kind for inner in flat((op,)) if inner.kind not in SEMANTICS]
        return f"there is no {missing[0]} on the processor" if missing else None

    def cost(self, op: Op, tiling: Tiling | None = None) -> Cost:
        """A roofline: the products and the other arithmetic one after the other, or the bytes, whichever takes longer."""
        work, spec = work_of(op), self.spec
        moved = work.bytes_in + work.bytes_weights + work.bytes_out
        compute = work.macs / spec.array.macs_per_cycle + work.elementwise / spec.vector_lanes
        energy = spec.energy.pj_per_mac * (work.macs + work.elementwise) + spec.energy.pj_per_dram_byte * moved
        return Cost(math.ceil(max(compute, moved / spec.dram.sustained_bytes_per_cycle)), moved, energy * 1e-12)

    def lower(self, segment: Segment, plan: Plan) -> Artifact:
        return pack(Lowered(ABI, segment, plan))

    def load(self, artifact: Artifact, constants: Mapping[str, NDArray[Any]]) -> Loaded:
        graph = unpack(artifact, ABI, Lowered).segment.graph
        for value in graph.constants:
            if value.name not in constants or constants[value.name].shape != value.shape:
                raise ArtifactRejected(f"the constant {value} is not there", hint="the artifact is for another model: compile again")
        return Loaded(graph, constants)

    def run(self, handle: Loaded, buffers: Mapping[str, NDArray[Any]]) -> None:
        known = {**handle.constants, **buffers}
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for op in flat(handle.graph.ops):
                _perform(op, known)


def _perform(op: Op, known: dict[str, NDArray[Any]]) -> None:
    """Compute one operation's outputs where they have a place, else beside it. Of a cache only the new rows are touched."""
    inputs = [known[value.name] for value in op.inputs]
    if op.kind == "cache_write" and op.name in known:
        target, (cache, rows, position) = known[op.name], inputs
        if not np.shares_memory(target, cache):
            np.copyto(target, cache)
        target[:, position[0] : position[0] + len(rows)] = rows.transpose(1, 0, 2)
        return
    for value, made in zip(op.outputs, SEMANTICS[op.kind](op, *inputs), strict=True):
        if value.name in known:
            np.copyto(known[value.name], made)
        else:
            known[value.name] = made
