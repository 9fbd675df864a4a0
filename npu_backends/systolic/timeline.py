"""When each piece of work runs, on engines that work side by side.

An engine is a queue: it takes its tasks in the order in which they are given, each as soon as the task before has ended and all that it
waits for has. Nothing is moved about, so a program that is lowered twice runs twice in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ...shared_protocol.errors import InvalidRequest

ENGINES = ("dma_in", "array", "vector", "dma_out", "cpu")


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    engine: str  # one of ENGINES
    cycles: int
    after: tuple[int, ...] = ()  # indices of tasks given earlier


@dataclass(frozen=True, slots=True)
class Timeline:
    tasks: tuple[Task, ...]
    starts: tuple[int, ...]  # cycle at which each task begins

    @property
    def ends(self) -> tuple[int, ...]:
        return tuple(start + task.cycles for start, task in zip(self.starts, self.tasks, strict=True))

    @property
    def cycles(self) -> int:
        return max(self.ends, default=0)

    @property
    def busy(self) -> dict[str, int]:
        """Cycles during which each engine works: the sum of its tasks."""
        return {engine: sum(task.cycles for task in self.tasks if task.engine == engine) for engine in ENGINES}


def schedule(tasks: Sequence[Task]) -> Timeline:
    """Raises InvalidRequest for an unknown engine, a negative cost, or a task that waits for itself or a later one."""
    free = dict.fromkeys(ENGINES, 0)
    starts: list[int] = []
    ends: list[int] = []
    for index, task in enumerate(tasks):
        if task.engine not in free:
            raise InvalidRequest(f"task {task.name!r} asks for the engine {task.engine!r}", hint=f"there are {', '.join(ENGINES)}")
        if task.cycles < 0:
            raise InvalidRequest(f"task {task.name!r} takes {task.cycles} cycles")
        if not all(0 <= other < index for other in task.after):
            raise InvalidRequest(f"task {index} {task.name!r} waits for {task.after}", hint="a task waits for earlier ones only")
        start = max([free[task.engine], *(ends[other] for other in task.after)])
        starts.append(start)
        ends.append(start + task.cycles)
        free[task.engine] = ends[-1]
    return Timeline(tuple(tasks), tuple(starts))


def chrome_trace(timeline: Timeline, clock_hz: float, title: str = "npu") -> str:
    """JSON for chrome://tracing or Perfetto: one row an engine, microseconds of a chip at that clock."""
    rows = {engine: row for row, engine in enumerate(ENGINES)}
    events: list[dict[str, object]] = [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": title}}]
    events += [{"ph": "M", "pid": 0, "tid": row, "name": "thread_name", "args": {"name": engine}} for engine, row in rows.items()]
    scale = 1e6 / clock_hz
    for task, start in zip(timeline.tasks, timeline.starts, strict=True):
        event = {"ph": "X", "pid": 0, "tid": rows[task.engine], "name": task.name, "ts": start * scale, "dur": task.cycles * scale}
        events.append(event | {"args": {"start_cycle": start, "cycles": task.cycles}})
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, separators=(",", ":"))
