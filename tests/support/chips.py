"""Chips that only name prices and refusals: all that cutting a graph asks of one, drawn at random and the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.op import Op
from hybrid.npu_backends.ir.value import Value
from hybrid.shared_protocol.compile_errors import DoesNotFit


@dataclass(frozen=True)
class Priced:
    """`prices`: by operation, whole numbers so that sums are exact in any order. A string is the reason of a refusal; one that begins with
    "room" is met only when the price is asked for."""

    name: str
    prices: dict[str, float | str]

    def supports(self, op: Op) -> str | None:
        price = self.prices[op.name]
        return price if isinstance(price, str) and not price.startswith("room") else None

    def refuses(self, op: Op) -> bool:
        return isinstance(self.prices[op.name], str)


@dataclass(frozen=True)
class PricedChips:
    chips: tuple[Any, ...]
    moves: dict[tuple[str, str, str], float]
    launches: dict[str, float]

    def cost(self, chip: Any, op: Op) -> float:
        price = chip.prices[op.name]
        if isinstance(price, str):
            raise DoesNotFit(price)
        return float(price)

    def transfer(self, value: Value, one: Any, other: Any) -> float:
        return self.moves[value.name, one.name, other.name]

    def launch(self, chip: Any) -> float:
        return self.launches[chip.name]

    @property
    def how(self) -> dict[str, Any]:
        return {"cost": self.cost, "transfer": self.transfer, "launch": self.launch}


def random_chips(source: random.Random, graph: Graph, names: Sequence[str]) -> PricedChips:
    """Prices near to each other, so that every one of them matters. The last chip refuses nothing."""
    dear = source.choice((2, 10, 40))
    chips = []
    for name in names:
        prices: dict[str, float | str] = {op.name: float(source.randint(0, 30)) for op in graph.ops}
        if name != names[-1]:
            prices |= {op.name: source.choice(("no such unit", "room for less")) for op in graph.ops if source.random() < 0.2}
        chips.append(Priced(name, prices))
    moves = {(value.name, one, other): float(source.randint(0, dear)) for value in graph.values() for one in names for other in names}
    return PricedChips(tuple(chips), moves, {name: float(source.randint(0, 10)) for name in names})
