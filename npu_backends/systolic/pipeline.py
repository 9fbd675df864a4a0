"""How long a kernel takes: its instructions as stages of loads, computations and stores, that overlap as two buffers of each allow.

    load    L0 | L1 |    L2    | ...     waits for the buffer: until stage i-2 has been computed (i-1 where there is one)
    array       C0   | C1 |    C2        waits for its load, for the stage before, and until i-2 has been stored
    vector           V0   | V1 | ...     follows the array in its stage
    store                 S0 | S1        follows the stage's computations

All queues are served in order, so no stage that grows or is added makes the end come earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.value import BITS
from ..spec import Spec
from ..tile.computations import key_of
from ..tile.program import Instruction, Kernel, Part
from .cycles import gemm_cycles, operand_traffic
from .dma import load_cycles, store_cycles
from .intrinsics import INTRINSICS
from .timeline import Task


@dataclass(frozen=True, slots=True)
class Stage:
    """Cycles of each engine between two waits; 0 where there is nothing to do."""

    load: int
    array: int
    vector: int
    store: int


@dataclass(frozen=True, slots=True)
class Counted:
    """All that a kernel takes, alone."""

    stages: tuple[Stage, ...]
    waits: bool  # for the stage before, with every load
    cycles: int
    macs: int
    dram_bytes: int
    sram_bytes: int  # read and written, by transfers too

    def busy(self, engine: str) -> int:
        """Cycles during which an engine works: load, array, vector or store."""
        return sum(getattr(stage, engine) for stage in self.stages)

    @property
    def hidden_dma(self) -> float:
        """The part of the transfers' cycles that cost no time, 0 to 1: others worked meanwhile. 1.0 where nothing is transferred."""
        transfers = self.busy("load") + self.busy("store")
        spare = self.busy("array") + self.busy("vector") + transfers - self.cycles
        return min(1.0, spare / transfers) if transfers else 1.0


@dataclass(slots=True)
class _Open:
    """A stage as it fills."""

    load: int = 0  # bytes
    array: int = 0
    vector: int = 0
    store: int = 0  # bytes
    computes: bool = False


def count(kernel: Kernel, spec: Spec) -> Counted:
    opened, macs, dram, sram = [_Open()], 0, 0, 0
    for instruction in kernel.instructions:
        match instruction.op:
            case "load":
                if opened[-1].computes or opened[-1].store:
                    opened.append(_Open())
                size = _bytes(instruction.ins[0], kernel.operands[instruction.ins[0].place])
                opened[-1].load += size
                dram, sram = dram + size, sram + size
            case "store":
                size = _bytes(instruction.out[0], kernel.operands[instruction.out[0].place])
                opened[-1].store += size
                dram, sram = dram + size, sram + size
            case "see":
                pass
            case _:
                opened[-1].computes = True
                work = _compute(kernel, instruction, spec)
                opened[-1].array += work.array
                opened[-1].vector += work.vector
                macs, sram = macs + work.macs, sram + work.sram_bytes
    stages = _timed(opened, kernel.streams, spec) if kernel.instructions else ()
    return Counted(stages, kernel.waits, cycles_of(stages, kernel.waits), macs, dram, sram)


@dataclass(frozen=True, slots=True)
class _Work:
    array: int
    vector: int
    macs: int
    sram_bytes: int


def _compute(kernel: Kernel, instruction: Instruction, spec: Spec) -> _Work:
    slots = kernel.slots
    intrinsic = INTRINSICS[key_of(kernel, instruction)]
    (m, n), shape = slots[instruction.out[0].place].shape(instruction.out[0]), slots[instruction.ins[0].place].shape(instruction.ins[0])
    if intrinsic.unit == "array":
        k = shape[1]
        words = operand_traffic(m, n, k, spec.array, kernel.dataflow)  # type: ignore[arg-type]
        a, w = (BITS[slots[part.place].dtype] for part in instruction.ins[:2])
        bits = words.input_reads * a + words.weight_reads * w + 32 * (words.sum_writes + words.sum_reads)
        return _Work(gemm_cycles(m, n, k, spec.array, kernel.dataflow), 0, m * n * k, -(-bits // 8))  # type: ignore[arg-type]
    if intrinsic.lane_ops == 0:
        return _Work(0, 0, 0, 0)
    rows, cols = shape if instruction.op == "reduce" else (m, n)
    touched = sum(_slot_bytes(kernel, part) for part in (*instruction.ins, *instruction.out))
    return _Work(0, -(-rows * cols * intrinsic.lane_ops // max(spec.vector_lanes, 1)), 0, touched)


def _slot_bytes(kernel: Kernel, part: Part) -> int:
    slot = kernel.slots[part.place]
    rows, cols = slot.shape(part)
    return -(-rows * cols * BITS[slot.dtype] // 8)


def _bytes(part: Part, dtype: str) -> int:
    return -(-part.rows * part.cols * BITS[dtype] // 8)  # type: ignore[index]


def _timed(opened: Sequence[_Open], streams: bool, spec: Spec) -> tuple[Stage, ...]:
    """Bytes as cycles. Of a stream, latencies are waited for once: what comes next is asked for before the last has come."""
    stages, loaded, stored = [], False, False
    for stage in opened:
        load, store = load_cycles(stage.load, spec), store_cycles(stage.store, spec)
        if streams and loaded and load:
            load -= spec.dram.latency_cycles
        if streams and stored and store:
            store -= spec.sram.latency_cycles
        loaded, stored = loaded or load > 0, stored or store > 0
        stages.append(Stage(load, stage.array, stage.vector, store))
    return tuple(stages)


def cycles_of(stages: Sequence[Stage], waits: bool = False) -> int:
    loaded = stored = 0
    computed, left = [0, 0], [0, 0]  # when the last two stages were computed and stored
    for stage in stages:
        loaded = max(loaded, computed[waits]) + stage.load
        done = max(loaded, computed[1], left[0]) + stage.array + stage.vector
        stored = max(stored, done) + stage.store
        computed, left = [computed[1], done], [left[1], stored]
    return max(loaded, computed[1], stored)


def tasks_of(counted: Counted, name: str, first: int, after: tuple[int, ...]) -> tuple[list[Task], tuple[int, ...]]:
    """The same as tasks, numbered from `first`, none of which begins before those of `after` have ended; and those that end last."""
    tasks: list[Task] = []
    computed: list[tuple[int, ...]] = [after, after]
    left: list[tuple[int, ...]] = [after, after]

    def add(engine: str, cycles: int, waits: tuple[int, ...]) -> tuple[int, ...]:
        """The task, or what it would have waited for where it has nothing to do."""
        if not cycles:
            return waits
        tasks.append(Task(name, engine, cycles, tuple(sorted(set(waits)))))
        return (first + len(tasks) - 1,)

    loaded = stored = after
    for stage in counted.stages:
        loaded = add("dma_in", stage.load, loaded + computed[counted.waits])
        done = add("array", stage.array, loaded + computed[1] + left[0])
        done = add("vector", stage.vector, done)
        stored = add("dma_out", stage.store, stored + done)
        computed, left = [computed[1], done], [left[1], stored]
    return tasks, tuple(sorted({*loaded, *computed[1], *stored}))
