"""Join to each matrix product what may be done on the way in or out, as far as the chip has room for it."""

from __future__ import annotations

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
    fused operation. Nothing is joined that would wait for itself, or that has a higher `price` than its parts: the bytes that it moves,
    unless the caller knows better. What is fused already stays as it is.
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
                if self._join(scores, softmax, mix):
                    return

    def grow(self, product: int, neighbours: Callable[[int, str], list[int]]) -> None:
        """Join neighbours of the product, then theirs, until nothing more may be joined."""
        reached = [product]
        for number in reached:  # which grows
            reached += [other for other in neighbours(number, self.ops[product].kind) if self._join(product, other)]

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

    def _join(self, first: int, *others: int) -> bool:
        """Add operations that still stand alone to the group of the first, where that is legal, fits, and costs no more."""
        groups = (self.groups.of[first], *others)
        if not all(self.groups.alone(number) for number in others) or not self.groups.may_join(*groups):
            return False
        joined = self.joined(sorted((*self.groups.members[groups[0]], *others)))
        if not self.fits(joined) or self.price(joined) > sum(self.price(self.joined(self.groups.members[group])) for group in groups):
            return False
        self.groups.join(*groups)
        return True

    def _readers_of(self, number: int, kind: str) -> list[int]:
        """Operations of a kind whose first input is what this one makes."""
        made = self.ops[number].outputs[0]
        return [
            reader for reader in self.readers.get(made.name, ()) if self.ops[reader].kind == kind and self.ops[reader].inputs[0] == made
        ]
