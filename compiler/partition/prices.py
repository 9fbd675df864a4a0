"""What a cut costs where chips share a memory outside of them, as those of one device do: from their specs and their cost models."""

from __future__ import annotations

from collections.abc import Callable

from ...npu_backends.base import Adapter, Tiling
from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.op import Op, flat
from ...npu_backends.ir.value import Value
from ...npu_backends.ir.work import work_of
from ...npu_backends.tile.kernels import nameless
from .problem import OpCost, TransferCost


def computing(tile: Callable[[Adapter, Op], Tiling | None] = lambda chip, op: None) -> OpCost:
    """Seconds by the chip's own cost model and clock, for the tiling that `tile` chooses. Layers are alike, so each price is asked for
    once."""
    known: dict[tuple[str, Op], float] = {}

    def seconds(chip: Adapter, op: Op) -> float:
        alike = chip.name, nameless(op)
        if alike not in known:
            known[alike] = chip.spec.seconds(chip.cost(op, tile(chip, op)).cycles)
        return known[alike]

    return seconds


def launching(chip: Adapter) -> float:
    return chip.spec.seconds(chip.spec.launch_cycles)


def moving(graph: Graph) -> TransferCost:
    """Both chips wait for the memory once, and the value passes the slower one's port: it must have left the one before the other reads.

    A state stands in the shared memory all the time: of what a run changes only the new rows are moved.
    """
    changed = {value.name: 0 for value in graph.inputs if value.name in {before for before, _ in graph.states}}
    changed |= {inner.name: work_of(inner).bytes_out for inner in flat(graph.ops) if inner.kind == "cache_write"}

    def seconds(value: Value, one: Adapter, other: Adapter) -> float:
        rate = min(chip.spec.clock_hz * chip.spec.dram.sustained_bytes_per_cycle for chip in (one, other))
        waits = sum(chip.spec.seconds(chip.spec.dram.latency_cycles) for chip in (one, other))
        return waits + changed.get(value.name, value.bytes) / rate

    return seconds
