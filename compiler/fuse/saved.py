"""What fusion saved: bytes that would have left the chip and come back."""

from __future__ import annotations

from dataclasses import dataclass

from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.op import flat
from .rules import describe
from .traffic import traffic


@dataclass(frozen=True, slots=True)
class Saved:
    name: str  # of the fused operation
    what: str  # as "norm + linear + rotary"
    ops: int  # that it was made of
    bytes: int


def saved(graph: Graph) -> tuple[Saved, ...]:
    """For each fused operation of a graph, the traffic of its parts one by one less its own."""
    joined = [op for op in graph.ops if op.kind == "fused"]
    return tuple(Saved(op.name, describe(op), len(flat((op,))), sum(map(traffic, flat((op,)))) - traffic(op)) for op in joined)
