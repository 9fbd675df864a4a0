"""What a segment's run takes on the simulated chip: cycles of each engine, traffic, energy, and when each piece of work runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base import Cost
from ..ir.op import Op
from ..spec import Spec
from .energy import joules
from .pipeline import Counted, tasks_of
from .timeline import Task, Timeline, schedule


@dataclass(frozen=True, slots=True)
class OpRecord:
    name: str
    kind: str
    counted: Counted
    cost: Cost


@dataclass(frozen=True, slots=True)
class Record:
    """Operations run one after the other, so `cost` is the sum of theirs and of the launch; equal to what the adapter's `cost` says."""

    ops: tuple[OpRecord, ...]
    cost: Cost
    launch_cycles: int
    macs: int
    sram_bytes: int
    array_cycles: int  # that the array works
    vector_cycles: int
    dma_cycles: int  # that transfers take, both ways

    def timeline(self) -> Timeline:
        """When each engine works on what; the launch comes before cycle 0."""
        tasks: list[Task] = []
        after: tuple[int, ...] = ()
        for op in self.ops:
            more, after = tasks_of(op.counted, op.name, len(tasks), after)
            tasks += more
        return schedule(tasks)


def cost_of(counted: Counted, spec: Spec) -> Cost:
    energy = joules(spec.energy, macs=counted.macs, sram_bytes=counted.sram_bytes, dram_bytes=counted.dram_bytes)
    return Cost(counted.cycles, counted.dram_bytes, energy)


def record_of(ops: Sequence[tuple[Op, Counted]], spec: Spec) -> Record:
    records = tuple(OpRecord(op.name, op.kind, counted, cost_of(counted, spec)) for op, counted in ops)
    return Record(
        ops=records,
        cost=sum((record.cost for record in records), Cost(spec.launch_cycles, 0, 0.0)),
        launch_cycles=spec.launch_cycles,
        macs=sum(counted.macs for _, counted in ops),
        sram_bytes=sum(counted.sram_bytes for _, counted in ops),
        array_cycles=sum(counted.busy("array") for _, counted in ops),
        vector_cycles=sum(counted.busy("vector") for _, counted in ops),
        dma_cycles=sum(counted.busy("load") + counted.busy("store") for _, counted in ops),
    )
