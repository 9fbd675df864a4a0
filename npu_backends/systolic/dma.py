"""Moving data between DRAM and SRAM while the array computes.

A transfer waits for its first byte, then runs at what the slower of the two memories sustains; both are filled in whole bursts. With two
buffers for each operand a step computes on one while the next step's data come into the other and the last step's results leave:

    load    L0 | L1      | L2      |         |
    array      | C0      | C1      | C2      |
    store      |         | S0      | S1      | S2

A fence ends each step, so the steps take T = L0 + sum over i of max(C_i, L_i+1, S_i-1) + S_last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..spec import Memory, Spec
from .timeline import Task


@dataclass(frozen=True, slots=True)
class Step:
    """Cycles of one step of a double-buffered loop; 0 where there is nothing to do."""

    load: int
    compute: int
    store: int


def transfer_cycles(size: int, source: Memory, target: Memory) -> int:
    """Cycles to move `size` bytes, contiguous on both sides; 0 for nothing. The reader's latency is waited for once."""
    if size == 0:
        return 0
    burst = max(source.burst_bytes, target.burst_bytes)
    moved = -(-size // burst) * burst
    speed = min(source.sustained_bytes_per_cycle, target.sustained_bytes_per_cycle)
    return source.latency_cycles + _up(moved / speed)


def load_cycles(size: int, spec: Spec) -> int:
    return transfer_cycles(size, spec.dram, spec.sram)


def store_cycles(size: int, spec: Spec) -> int:
    return transfer_cycles(size, spec.sram, spec.dram)


def double_buffered(steps: Sequence[Step]) -> int:
    """Cycles of all steps, loads and stores overlapped with the array."""
    if not steps:
        return 0
    total = steps[0].load + steps[-1].store
    for index, step in enumerate(steps):
        following = steps[index + 1].load if index + 1 < len(steps) else 0
        previous = steps[index - 1].store if index else 0
        total += max(step.compute, following, previous)
    return total


def tasks_of(steps: Sequence[Step], name: str = "") -> list[Task]:
    """The steps as tasks with fences: nothing of a step begins before all of the step before has ended."""
    tasks: list[Task] = []
    fence: tuple[int, ...] = ()
    nothing = Step(0, 0, 0)
    padded = [nothing, nothing, *steps, nothing, nothing]
    for index in range(-1, len(steps) + 1):
        before, now, after = padded[index + 1 : index + 4]
        work = (("dma_in", index + 1, after.load), ("array", index, now.compute), ("dma_out", index - 1, before.store))
        this = [Task(f"{name}{at}", engine, cycles, after=fence) for engine, at, cycles in work if cycles]
        if this:
            fence = tuple(range(len(tasks), len(tasks) + len(this)))
            tasks += this
    return tasks


def _up(value: float) -> int:
    """Rounded up, but not for the last bit of a division."""
    return -int(-(value - 1e-9) // 1) if value > 0 else 0
