"""Join to each matrix product what may be done on the way in or out, as far as the chip has room for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.op import Op, fused
from .groups import Groups
from .order import predecessors
from .rules import ATTENTION, PRODUCTS, epilogue, prologue
from .traffic import traffic

Fits = Callable[[Op], bool]
Price = Callable[[Op], float]


def fuse(graph: Graph, fits: Fits, price: Price = traffic) -> Graph:
    """The same computation in fewer operations: bit for bit, since the parts of a fused one keep their meaning and their order.

    `fits` says whether a fused operation can run as one. Products are taken in the graph's order: attention is put together first, then
    every product takes what follows it, the nearest first, then what leads to it. A value that others read becomes an output of the
    fused operation. Nothing is joined that would wait for itself, or whose `price` is higher than that of its parts: the bytes that it
    moves, unless the caller knows better. What is fused already stays as it is.
    """
    work = _Work(graph, fits, price)
    products = [number for number, op in enumerate(graph.ops) if op.kind in PRODUCTS]
    for number in products:
        if graph.ops[number].kind == ATTENTION[0]:
            work.put_attention_together(number)
    for number in products:
        work.grow(number, work.that_follow)
    for number in products:
        work.grow(number, work.that_lead_to)
    return replace(graph, ops=tuple(work.joined(members) for members in work.groups.in_order()))


class _Work:
    """A graph with its operations by number, who makes and who reads each value, and the groups so far."""

    def __init__(self, graph: Graph, fits: Fits, price: Price) -> None:
        self.ops, self.fits, self.price = graph.ops, fits, price
        self.groups = Groups(predecessors(graph.ops))
        self.wanted = {value.name for value in graph.outputs}
        self.maker = {value.name: number for number, op in enumerate(graph.ops) for value in op.outputs}
        self.readers: dict[str, list[int]] = {}
        for number, op in enumerate(graph.ops):
            for name in {value.name for value in op.inputs}:
                self.readers.setdefault(name, []).append(number)

    def put_attention_together(self, scores: int) -> None:
        """Scores, softmax and mix as one, or not at all."""
        _, softmax_kind, mix_kind = ATTENTION
        for softmax in self._readers_of(scores, softmax_kind):
            for mix in self._readers_of(softmax, mix_kind):
                if self._may_join(scores, [softmax, mix]) and self._dearer_by(scores, [softmax, mix]) <= (0, 0):
                    self.groups.join(self.groups.of[scores], softmax, mix)
                    return

    def grow(self, product: int, neighbours: Callable[[int, str], list[int]]) -> None:
        """Join neighbours of the product, then theirs, and so on: as many as may be joined, less the last ones that make it dearer."""
        reached, best, kept = [product], (0.0, 0.0), 1
        for number in reached:  # which grows
            for other in neighbours(number, self.ops[product].kind):
                if other not in reached and self._may_join(product, [*reached[1:], other]):
                    reached.append(other)
                    dearer = self._dearer_by(product, reached[1:])
                    if dearer <= best:
                        best, kept = dearer, len(reached)
        if kept > 1:
            self.groups.join(self.groups.of[product], *reached[1:kept])

    def that_follow(self, number: int, product: str) -> list[int]:
        made = [value.name for value in self.ops[number].outputs]
        readers = {reader for name in made for reader in self.readers.get(name, ())}
        return sorted(reader for reader in readers if epilogue(self.ops[reader].kind, product))

    def that_lead_to(self, number: int, product: str) -> list[int]:
        makers = {self.maker[value.name] for value in self.ops[number].inputs if value.name in self.maker}
        return sorted((maker for maker in makers if prologue(self.ops[maker].kind, product)), reverse=True)

    def joined(self, members: Sequence[int]) -> Op:
        """Operations as one; its outputs are what others read of theirs."""
        if len(members) == 1:
            return self.ops[members[0]]
        inside, body = set(members), tuple(self.ops[member] for member in members)
        outputs = [
            value
            for op in body
            for value in op.outputs
            if value.name in self.wanted or not inside.issuperset(self.readers.get(value.name, ()))
        ]
        return fused(body, tuple(outputs) or body[-1].outputs)

    def _with(self, first: int, others: list[int]) -> Op:
        return self.joined(sorted((*self.groups.members[self.groups.of[first]], *others)))

    def _may_join(self, first: int, others: list[int]) -> bool:
        """Whether operations still stand alone and may go to the group of the first: legally, and as far as the chip can tell."""
        alone = all(self.groups.alone(number) for number in others)
        return alone and self.groups.may_join(self.groups.of[first], *others) and self.fits(self._with(first, others))

    def _dearer_by(self, first: int, others: list[int]) -> tuple[float, float]:
        """The price of a join less that of its parts: how many more have none, being refused by the chip, and then by how much."""
        joined = self.price(self._with(first, others))
        if joined == math.inf:
            return math.inf, 0.0
        apart = [self.price(self._with(first, [])), *(self.price(self.ops[number]) for number in others)]
        return -float(apart.count(math.inf)), joined - sum(price for price in apart if price < math.inf)

    def _readers_of(self, number: int, kind: str) -> list[int]:
        """Operations of a kind whose first input is what this one makes."""
        made = self.ops[number].outputs[0]
        return [
            reader for reader in self.readers.get(made.name, ()) if self.ops[reader].kind == kind and self.ops[reader].inputs[0] == made
        ]
