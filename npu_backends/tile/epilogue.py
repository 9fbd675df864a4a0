"""What follows a product element by element is computed on each tile of its outputs, while the tile is on the chip.

linear ── silu ── multiply ── norm        silu and multiply follow the product; the norm needs whole rows
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..ir.op import Op
from .builder import Builder
from .rows import elementwise_tile, read_tile

TILED = ("linear_i8", "linear_g32")  # products whose tiling is free; a float product's sums are cut in one way only
BY_TILE = frozenset({"add", "multiply", "silu", "gelu", "softcap"})


@dataclass(frozen=True, slots=True)
class Epilogues:
    """`after`: what follows each product, by the product's name. `local`: values of which only tiles are ever on the chip."""

    after: Mapping[str, tuple[Op, ...]]
    local: frozenset[str]

    @property
    def taken(self) -> frozenset[str]:
        """Names of the operations that run with a product, not on their own."""
        return frozenset(op.name for ops in self.after.values() for op in ops)


def epilogues_of(body: Sequence[Op]) -> Epilogues:
    """Of a fused operation's body, or of one operation alone, which nothing follows."""
    after: dict[str, tuple[Op, ...]] = {}
    local: set[str] = set()
    for number, product in enumerate(body):
        if product.kind not in TILED:
            continue
        following: list[Op] = []
        for op in body[number + 1 :]:
            if op.kind not in BY_TILE or op.outputs[0].shape != product.outputs[0].shape:
                break
            following.append(op)
        after[product.name] = tuple(following)
        made = {op.name for op in (product, *following)}
        elsewhere = {value.name for op in body if op not in following for value in op.inputs}
        local |= made - elsewhere
    return Epilogues(MappingProxyType(after), frozenset(local))


def fetch_epilogue(b: Builder, product: Op, m: tuple[int, int], n: tuple[int, int]) -> None:
    """Load what it reads from outside together with the product's own tiles, not when the product has been waited for."""
    for op in b.after[product.name]:
        read_tile(b, op, *m, *n)


def run_epilogue(b: Builder, product: Op, m: tuple[int, int], n: tuple[int, int]) -> None:
    for op in b.after[product.name]:
        elementwise_tile(b, op, *m, *n)
