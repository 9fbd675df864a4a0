"""Kernels of matrix products: tiles of rows, outputs and inputs, visited in the order that the tiling says, sums kept until they are whole.

Alone, a product loads its tiles of rows. Fused, the rows of the strip are on the chip, and weights come past them; what follows the product
element by element runs on each tile of its outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ..base import Tiling
from ..ir.kinds import GROUP
from ..ir.op import Op
from .builder import Builder, split
from .epilogue import fetch_epilogue, run_epilogue

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Visit:
    m: Range
    n: Range
    k: Range
    ends: bool  # no more inputs are added to these sums


def visits(rows: int, outputs: int, inputs: int, tiling: Tiling, unit: int = 1) -> Iterator[Visit]:
    """Tiles in the tiling's order, with inputs innermost: sums that leave before they are whole would have to come back. Tiles of inputs
    are multiples of `unit`."""
    deep = max(tiling.tk // unit * unit, unit)
    parts = {"m": list(split(rows, tiling.tm)), "n": list(split(outputs, tiling.tn)), "k": list(split(inputs, deep))}
    order = tiling.order.replace("k", "") + "k"
    for chosen in itertools.product(*(parts[letter] for letter in order)):
        m, n, k = (chosen[order.index(letter)] for letter in "mnk")
        yield Visit(m, n, k, k[1] == inputs)


def _copies(whole: bool) -> int:
    """A tile that is all there is needs no second buffer for the next one."""
    return 1 if whole else 2


def linear_i8(b: Builder, op: Op, tiling: Tiling | None) -> None:
    assert tiling is not None
    (codes, scales, weights, weight_scales), (y,) = op.inputs, op.outputs
    (outputs, inputs) = weights.shape
    for visit in visits(b.count, outputs, inputs, tiling):
        (m0, m1), (n0, n1), (k0, k1) = visit.m, visit.n, visit.k
        whole = (n1 - n0, k1 - k0) == (outputs, inputs)
        a = b.part(codes, inputs, m0, m1, k0, k1)
        w = b.whole(weights, inputs, n0, n1, k0, k1, copies=_copies(whole))
        if visit.ends:
            factors = b.part(scales, 1, m0, m1), b.whole(weight_scales, outputs, 0, 1, n0, n1)
            fetch_epilogue(b, op, visit.m, visit.n)
        sums = b.tile(f"sums {y.name}", m1 - m0, n1 - n0, "i32", 0)  # a chip requantises them in their place
        b.matmul(sums, a, w, add=k0 > 0)
        if visit.ends:
            target = b.made(y, outputs, m0, m1, n0, n1)
            b.emit("requantise", (target,), (sums, *factors))
            b.done(y, target, outputs, m0, m1, n0, n1)
            run_epilogue(b, op, visit.m, visit.n)


def linear_g32(b: Builder, op: Op, tiling: Tiling | None) -> None:
    """Sums are float32, a group of inputs after the other, so that they may begin anew at any group."""
    assert tiling is not None
    (codes, scales, weights, *groups), (y,) = op.inputs, op.outputs
    (outputs, inputs) = weights.shape
    for visit in visits(b.count, outputs, inputs, tiling, GROUP):
        (m0, m1), (n0, n1), (k0, k1) = visit.m, visit.n, visit.k
        whole = _copies((n1 - n0, k1 - k0) == (outputs, inputs))
        a = b.part(codes, inputs, m0, m1, k0, k1)
        w = b.whole(weights, inputs, n0, n1, k0, k1, copies=whole)
        g = [b.whole(value, inputs // GROUP, n0, n1, k0 // GROUP, k1 // GROUP, copies=whole) for value in groups]
        target, factors = b.made(y, outputs, m0, m1, n0, n1), b.part(scales, 1, m0, m1)
        if visit.ends:
            fetch_epilogue(b, op, visit.m, visit.n)
        b.matmul(target, a, w, *g, add=k0 > 0)
        if visit.ends:
            b.map("multiply", target, target, factors)
            b.done(y, target, outputs, m0, m1, n0, n1)
            run_epilogue(b, op, visit.m, visit.n)


def linear(b: Builder, op: Op, tiling: Tiling | None) -> None:
    """All weights at once: how a row's float sums are cut must not change their bits."""
    (x, weights), (y,) = op.inputs, op.outputs
    (outputs, inputs) = weights.shape
    for r0, r1 in b.chunks():
        target = b.made(y, outputs, r0, r1)
        b.matmul(target, b.part(x, inputs, r0, r1), b.whole(weights, inputs, 0, outputs, copies=1), function="rows")
        b.done(y, target, outputs, r0, r1)
