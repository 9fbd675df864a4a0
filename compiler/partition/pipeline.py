"""Segments of several runs side by side: who waits for whom, with two buffers for whatever passes from one segment to another.

    npu   | 0.a |     | 1.a | 0.c | 2.a | 1.c |
    cpu         | 0.b |     | 1.b |     | 2.b |     ...     run.segment

A run's segments wait for what they read. The next run writes to the other buffer, and the one after it waits until the first is free.
States have one place each: a run reads them after the run before has written them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...npu_backends.base import Segment
from ...npu_backends.systolic.timeline import Task as EngineTask
from .partition import Partition, Transfer

BUFFERS = 2


@dataclass(frozen=True, slots=True)
class Task:
    """`lane`: a chip's name, or "one>other" for transfers: each does one thing at a time, in the order given."""

    name: str
    lane: str
    seconds: float
    after: tuple[int, ...]  # tasks before this one in the list


@dataclass(frozen=True, slots=True)
class _Part:
    """A segment or a transfer, of any run: what it waits for, as (part, how many runs ago)."""

    name: str
    lane: str
    seconds: float
    waits: tuple[tuple[int, int], ...]


def tasks(partition: Partition, runs: int = 1, *, feedback: bool = False) -> tuple[Task, ...]:
    """The work of so many runs, ordered so that each lane takes the first that can start; of one run the parts keep their order.

    `feedback`: a run needs what the run before gives, as a step of decoding does, so nothing of it starts earlier.
    """
    parts = _parts(partition, feedback)
    queues = {(run, lane): [n for n, part in enumerate(parts) if part.lane == lane] for run in range(runs) for lane in _lanes(parts)}
    done: dict[tuple[int, int], int] = {}  # (run, part) -> its number among the tasks
    ends: list[float] = []
    free: dict[str, float] = {}
    ordered: list[Task] = []
    while len(ordered) < runs * len(parts):
        ready = []
        for (run, lane), queue in queues.items():
            needed = [(run - ago, other) for other, ago in parts[queue[0]].waits if run >= ago] if queue else []
            if queue and all(key in done for key in needed):
                after = tuple(sorted(done[key] for key in needed))
                ready.append((max([free.get(lane, 0.0), *(ends[index] for index in after)]), run, queue[0], after))
        start, run, number, after = min(ready)
        part = parts[number]
        queues[run, part.lane].pop(0)
        done[run, number] = len(ordered)
        ordered.append(Task(f"{run}.{part.name}", part.lane, part.seconds, after))
        ends.append(start + part.seconds)
        free[part.lane] = ends[-1]
    return tuple(ordered)


def total_seconds(ordered: Sequence[Task]) -> float:
    """When the last one ends."""
    ends: list[float] = []
    free: dict[str, float] = {}
    for task in ordered:
        ends.append(task.seconds + max([free.get(task.lane, 0.0), *(ends[index] for index in task.after)]))
        free[task.lane] = ends[-1]
    return max(ends, default=0.0)


def pipelined_seconds(partition: Partition, *, feedback: bool = False, runs: int = 8) -> float:
    """What one more run takes once the pipeline is full."""
    short, long = (total_seconds(tasks(partition, count, feedback=feedback)) for count in (runs, 2 * runs))
    return (long - short) / runs


def on_engines(ordered: Sequence[Task], clock_hz: float, host: str) -> tuple[EngineTask, ...]:
    """The same for the simulator's timeline, in cycles of that clock: the host is its cpu, any other chip its array."""

    def engine(lane: str) -> str:
        source, _, target = lane.partition(">")
        return ("dma_out" if target == host else "dma_in") if target else ("cpu" if source == host else "array")

    return tuple(EngineTask(task.name, engine(task.lane), round(task.seconds * clock_hz), task.after) for task in ordered)


def _lanes(parts: Sequence[_Part]) -> list[str]:
    return list(dict.fromkeys(part.lane for part in parts))


Place = tuple[str, str]  # a value on a chip


def _parts(partition: Partition, feedback: bool) -> list[_Part]:
    """Transfers, each just before the segment that it is for, then the segment; what is returned comes last."""
    listed: list[Segment | Transfer] = []
    for segment, spent in zip(partition.segments, partition.spent, strict=True):
        listed += [*spent.arrivals, segment]
    listed += partition.returned
    reads, makes = [_reads(what) for what in listed], [_makes(what) for what in listed]
    maker = {place: index for index, places in enumerate(makes) for place in places}
    readers: dict[Place, list[int]] = {}
    for index, places in enumerate(reads):
        for place in places:
            readers.setdefault(place, []).append(index)
    after_of = {(before, segment.chip): (after, segment.chip) for segment in partition.segments for before, after in segment.graph.states}
    before_of = {after: before for before, after in after_of.items()}
    parts = []
    for index, what in enumerate(listed):
        waits = {(maker[place], 0) for place in reads[index] if place in maker}
        waits |= {(maker[after_of[place]], 1) for place in reads[index] if place in after_of}
        for place in makes[index]:
            if place in before_of:  # written over what was there, once nobody reads it any more
                waits |= {(other, 0) for other in readers.get(before_of[place], ()) if other < index}
                waits |= {(other, 1) for other in readers.get(place, ())}
            else:
                waits |= {(other, BUFFERS) for other in readers.get(place, ())}
        if feedback and not any(ago == 0 for _, ago in waits):
            waits |= {(other, 1) for other in range(len(listed))}
        parts.append(_part(what, partition, tuple(sorted(waits))))
    return parts


def _part(what: Segment | Transfer, partition: Partition, waits: tuple[tuple[int, int], ...]) -> _Part:
    if isinstance(what, Transfer):
        return _Part(f"{what.value}>{what.target}", f"{what.source}>{what.target}", what.seconds, waits)
    spent = partition.spent[partition.segments.index(what)]
    return _Part(what.name, what.chip, spent.compute + spent.launch, waits)


def _reads(what: Segment | Transfer) -> list[Place]:
    if isinstance(what, Transfer):
        return [(what.value, what.source)]
    return [(value.name, what.chip) for value in what.graph.inputs]


def _makes(what: Segment | Transfer) -> list[Place]:
    if isinstance(what, Transfer):
        return [(what.value, what.target)]
    return [(value.name, what.chip) for value in what.graph.outputs]
