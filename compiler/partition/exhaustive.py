"""Every assignment of chips to operations, counted one by one: what the search is held against on small graphs.

It shares nothing with the search, nor with the numbers that this is given: it asks graph and chips itself, and walks each assignment as a
run would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from ...npu_backends.base import Adapter
from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.op import Op
from ...npu_backends.ir.value import Value
from ...shared_protocol.compile_errors import DoesNotFit


def cheapest(
    graph: Graph,
    chips: Sequence[Adapter],
    *,
    cost: Callable[[Adapter, Op], float],
    transfer: Callable[[Value, Adapter, Adapter], float],
    launch: Callable[[Adapter], float],
    host: str | None = None,
) -> float:
    """Seconds of the best of len(chips) ** len(graph.ops) assignments; infinite when there is none."""
    prices = [[_price(chip, op, cost) for chip in chips] for op in graph.ops]
    moves = {
        (value.name, one, other): transfer(value, chips[one], chips[other])
        for value in graph.values()
        for one, other in product(range(len(chips)), repeat=2)
        if one != other
    }
    launches = [launch(chip) for chip in chips]
    at = next((number for number, chip in enumerate(chips) if chip.name == host), None)
    possible = [[number for number, price in enumerate(row) if price is not None] for row in prices]
    walk = _Walk(graph, prices, moves, launches, at)
    return min((walk.seconds(assignment) for assignment in product(*possible)), default=float("inf"))


def _price(chip: Adapter, op: Op, cost: Callable[[Adapter, Op], float]) -> float | None:
    if chip.supports(op) is not None:
        return None
    try:
        return cost(chip, op)
    except DoesNotFit:
        return None


class _Walk:
    def __init__(
        self,
        graph: Graph,
        prices: list[list[float | None]],
        moves: dict[tuple[str, int, int], float],
        launches: list[float],
        host: int | None,
    ) -> None:
        self.graph, self.prices, self.moves, self.launches, self.host = graph, prices, moves, launches, host
        self.state_of = {after: before for before, after in graph.states}
        self.constants = {value.name for value in graph.constants}

    def seconds(self, assignment: tuple[int, ...]) -> float:
        home: dict[str, int] = {}  # of every value the chip it is on
        if self.host is not None:
            home = {value.name: self.host for value in self.graph.inputs}
        for op, chip in zip(self.graph.ops, assignment, strict=True):
            for value in op.outputs:
                home[value.name] = chip
                if value.name in self.state_of:
                    home[self.state_of[value.name]] = chip
        arrived: set[tuple[str, int]] = set()
        total, running = 0.0, None
        for op, chip, row in zip(self.graph.ops, assignment, self.prices, strict=True):
            total += row[chip] or 0.0
            if chip != running:
                total, running = total + self.launches[chip], chip
            for value in op.inputs:
                total += self._move(value.name, chip, home, arrived)
        if self.host is not None:
            states = {name for pair in self.graph.states for name in pair}
            for value in self.graph.outputs:
                if value.name not in states:
                    total += self._move(value.name, self.host, home, arrived)
        return total

    def _move(self, name: str, chip: int, home: dict[str, int], arrived: set[tuple[str, int]]) -> float:
        if name in self.constants or home.get(name, chip) == chip or (name, chip) in arrived:
            return 0.0
        arrived.add((name, chip))
        return self.moves[name, home[name], chip]
