"""Arenas made once, and programs that run in them: every value stands where the plan says, and nothing is placed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiler.program import Compiled, Program
from ...npu_backends.base import SCRATCH, Adapter
from ...npu_backends.ir.value import ARRAYS
from ...shared_protocol.compile_errors import ArtifactRejected

LINE = 4096  # bytes: arenas begin at a multiple of it
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _Step:
    adapter: Adapter
    handle: Any
    buffers: Arrays


@dataclass(frozen=True, slots=True)
class Runnable:
    """One program in the arenas: its inputs and its logits are views of them."""

    program: Program
    steps: tuple[_Step, ...]
    ids: NDArray[np.int32]
    position: NDArray[np.int32]
    logit_index: NDArray[np.int32]
    logits: NDArray[np.float32]

    def run(self) -> None:
        for step in self.steps:
            step.adapter.run(step.handle, step.buffers)


class Machine:
    """All programs of a compiled model over one set of arenas: they take turns, and go on from the same states."""

    def __init__(self, compiled: Compiled, adapters: Mapping[str, Adapter]) -> None:
        """Raises ArtifactRejected where a chip has no adapter here, an adapter does not take its segment, or programs disagree on where
        a state stands."""
        memory, arenas = compiled.facts.target.sram.bytes + compiled.facts.target.dram.bytes, sum(compiled.arenas.values())
        if arenas > 2 * memory:  # twice: a simulated chip computes in memory of this machine beside its own
            raise ArtifactRejected(f"its arenas are {arenas:,} bytes, the chip has {memory:,}", hint="compile again")
        self.arenas: dict[str, NDArray[np.uint8]] = {name: _aligned(size) for name, size in compiled.arenas.items()}
        self.runnables = tuple(self._open(program, compiled.constants, adapters) for program in compiled.programs)
        _check_states(compiled.programs)

    def _open(self, program: Program, constants: Mapping[str, NDArray[Any]], adapters: Mapping[str, Adapter]) -> Runnable:
        views = self._views(program)
        wanted = {"ids": program.shape.rows, "position": 1, "logit_index": program.shape.logit_rows, "logits": program.shape.logit_rows}
        if any(name not in views or len(views[name]) != size for name, size in wanted.items()):
            raise ArtifactRejected(f"{program.shape.name} is of other rows than its graph", hint="compile again")
        steps = []
        for lowered in program.segments:
            adapter = adapters.get(lowered.segment.chip)
            if adapter is None:
                raise ArtifactRejected(f"{lowered.segment.name} is for the chip {lowered.segment.chip!r}, which is not here")
            used = {value.name for value in lowered.segment.graph.values()} & views.keys()
            handle = adapter.load(lowered.artifact, constants)
            buffers = {name: views[name] for name in used}
            if scratch := lowered.plan.placements.get(SCRATCH):
                if scratch.arena not in self.arenas:
                    raise ArtifactRejected(
                        f"{lowered.segment.name} works in an arena {scratch.arena!r} that was not planned", hint="compile again"
                    )
                buffers[SCRATCH] = self.arenas[scratch.arena]  # all of it: one array for all segments, to which kernels are bound once
            steps.append(_Step(adapter, handle, buffers))
        return Runnable(program, tuple(steps), views["ids"], views["position"], views["logit_index"], views["logits"])

    def _views(self, program: Program) -> Arrays:
        views: Arrays = {}
        constants = {value.name for value in program.graph.constants}
        for value in program.graph.values():
            if value.name in constants:
                continue
            place, kind = program.layout.placements.get(value.name), ARRAYS[value.dtype]
            arena = self.arenas.get(place.arena) if place else None
            end = place.offset + value.elements * kind.itemsize if place else 0
            if place is None or arena is None or place.offset < 0 or place.offset % kind.itemsize or end > len(arena):
                raise ArtifactRejected(f"{program.shape.name} has no place for {value}", hint="compile again")
            views[value.name] = arena[place.offset : end].view(kind).reshape(value.shape)
        return views


def _aligned(size: int) -> NDArray[np.uint8]:
    whole = np.zeros(size + LINE, np.uint8)
    start = -whole.ctypes.data % LINE
    return whole[start : start + size]


def _check_states(programs: tuple[Program, ...]) -> None:
    first = programs[0]
    for program in programs:
        for before, _ in first.graph.states:
            if program.layout.placements.get(before) != first.layout.placements[before]:
                raise ArtifactRejected(f"the state {before} stands elsewhere in {program.shape.name} than in {first.shape.name}")
