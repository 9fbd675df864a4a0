"""A run of a compiled program as a trace: every transfer, product and vector operation on its engine, and the processor beside them."""

from __future__ import annotations

import math

from ..npu_backends.systolic.adapter import SystolicAdapter
from ..npu_backends.systolic.pipeline import tasks_of
from ..npu_backends.systolic.timeline import Task, chrome_trace, schedule
from .chips import chips_of
from .program import Compiled, Program


def trace(compiled: Compiled, program: Program) -> str:
    """In Chrome's format, for Perfetto or chrome://tracing. Segments run one after the other, each after its launch; all cycles are of the
    chip's clock."""
    target = compiled.facts.target
    chips = chips_of(target, compiled.facts.host)
    tasks: list[Task] = []
    after: tuple[int, ...] = ()
    for lowered in program.segments:
        chip, name = chips[lowered.segment.chip], lowered.segment.name
        if isinstance(chip, SystolicAdapter):
            after = _add(tasks, Task(f"launch {name}", "cpu", target.launch_cycles, after))
            for op in chip.count(chip.load(lowered.artifact, compiled.constants)).ops:
                more, after = tasks_of(op.counted, op.name, len(tasks), after)
                tasks += more
        else:
            after = _add(tasks, Task(name, "cpu", math.ceil(lowered.seconds * target.clock_hz), after))
    return chrome_trace(schedule(tasks), target.clock_hz, f"{compiled.facts.model} on {target.name}, {program.shape.rows} rows")


def _add(tasks: list[Task], task: Task) -> tuple[int, ...]:
    tasks.append(task)
    return (len(tasks) - 1,)
