"""Cut a graph into segments, each for one chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...npu_backends.base import Adapter, Segment
from ...npu_backends.ir.graph import Graph, subgraph
from .problem import Crossing, LaunchCost, OpCost, Problem, Refusal, TransferCost, state_problem
from .search import LIMIT, search


@dataclass(frozen=True, slots=True)
class Transfer:
    value: str
    source: str  # chips
    target: str
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What one segment takes. `bytes_in` and `bytes_out` are of all values that it reads and makes for others, constants and states not
    counted; `arrivals` are those of what it reads that are on another chip until then."""

    compute: float  # seconds
    launch: float
    arrivals: tuple[Transfer, ...]
    bytes_in: int
    bytes_out: int

    @property
    def seconds(self) -> float:
        return self.compute + self.launch + sum(transfer.seconds for transfer in self.arrivals)


@dataclass(frozen=True, slots=True)
class Partition:
    """A graph's segments in their order, what each takes, and who refused what. `exact`: no cheaper cut of the graph's order exists."""

    segments: tuple[Segment, ...]
    spent: tuple[Spent, ...]  # for each segment
    returned: tuple[Transfer, ...]  # outputs on their way to the host, after all segments
    refused: tuple[Refusal, ...]
    exact: bool
    widest: int  # states that the search held at once

    @property
    def seconds(self) -> float:
        """One segment after the other, and nothing at the same time."""
        return sum(spent.seconds for spent in self.spent) + sum(transfer.seconds for transfer in self.returned)

    @property
    def seconds_on(self) -> Mapping[str, float]:
        """By chip: computing and being started, transfers left out."""
        total: dict[str, float] = {}
        for segment, spent in zip(self.segments, self.spent, strict=True):
            total[segment.chip] = total.get(segment.chip, 0.0) + spent.compute + spent.launch
        return total


def partition(
    graph: Graph,
    chips: Sequence[Adapter],
    *,
    cost: OpCost,
    transfer: TransferCost,
    launch: LaunchCost,
    host: str | None = None,
    limit: int = LIMIT,
) -> Partition:
    """The cheapest cut of the graph's order into segments, as problem.py counts.

    A segment is a run of operations on one chip, so what it waits for stands before it. A state stays on the chip that overwrites it.
    `host` names the chip that has the inputs and wants the outputs. Of equally cheap cuts always the same one is taken; where more than
    `limit` states are to be held at once the cheapest are, and `exact` is False.

    Raises OperationRefused for an operation that every chip refuses, CompileError for a price that is none.
    """
    problem, refused = state_problem(graph, chips, cost=cost, transfer=transfer, launch=launch, host=host)
    found = search(problem, limit)
    names = [chip.name for chip in chips]
    runs = _runs(found.chips)
    moved = _moved(problem, names, found.chips)
    segments = tuple(
        Segment(f"{graph.name}.{number}", names[found.chips[start]], subgraph(graph, f"{graph.name}.{number}", graph.ops[start:end]))
        for number, (start, end) in enumerate(runs)
    )
    spent = tuple(_spent(segment, problem, found.chips, run, moved) for segment, run in zip(segments, runs, strict=True))
    return Partition(segments, spent, tuple(moved.get(len(graph.ops), ())), refused, found.exact, found.widest)


def _runs(chips: Sequence[int]) -> list[tuple[int, int]]:
    starts = [number for number, chip in enumerate(chips) if number == 0 or chip != chips[number - 1]]
    return list(zip(starts, [*starts[1:], len(chips)], strict=True))


def _moved(problem: Problem, names: Sequence[str], chips: Sequence[int]) -> dict[int, list[Transfer]]:
    """By the operation before which it arrives (their number for the end), what is moved."""
    moved: dict[int, list[Transfer]] = {}
    for crossing in problem.crossings:
        home = crossing.host if crossing.maker is None else chips[crossing.maker]
        there = {home}
        for reader in crossing.readers:
            if chips[reader] not in there:
                there.add(chips[reader])
                moved.setdefault(reader, []).append(_transfer(crossing, names, home, chips[reader]))
        if crossing.wanted and crossing.host not in there:
            moved.setdefault(len(chips), []).append(_transfer(crossing, names, home, crossing.host))
    return moved


def _transfer(crossing: Crossing, names: Sequence[str], source: int, target: int) -> Transfer:
    return Transfer(crossing.value.name, names[source], names[target], crossing.value.bytes, crossing.prices[source][target])


def _spent(segment: Segment, problem: Problem, chips: Sequence[int], run: tuple[int, int], moved: Mapping[int, list[Transfer]]) -> Spent:
    start, end = run
    states = {name for pair in segment.graph.states for name in pair}
    return Spent(
        compute=sum(problem.prices[number][chips[number]] or 0.0 for number in range(start, end)),
        launch=problem.launches[chips[start]],
        arrivals=tuple(transfer for number in range(start, end) for transfer in moved.get(number, ())),
        bytes_in=sum(value.bytes for value in segment.graph.inputs if value.name not in states),
        bytes_out=sum(value.bytes for value in segment.graph.outputs if value.name not in states),
    )
