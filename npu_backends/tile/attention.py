"""Kernels of attention over a cache: head by head of the keys, each head's positions on the chip at once.

Two heads of keys where there is room, so that the next one comes in meanwhile; with `tn` of 1 in the tiling, one.

A row sees only the positions up to its own. What the array computes of the others is never looked at, so it is counted and left out.
"""

from __future__ import annotations

from ..base import Tiling
from ..ir.op import Op
from .builder import Builder


def _window(op: Op) -> int:
    return int(op.number("window", 0))


def one_head_at_a_time(tiling: Tiling | None) -> bool:
    return tiling is not None and tiling.tn == 1


def _copies(tiling: Tiling | None) -> int:
    return 1 if one_head_at_a_time(tiling) else 2


def scores(b: Builder, op: Op, tiling: Tiling | None) -> None:
    (query, keys, position), (y,) = op.inputs, op.outputs
    (_, heads, dim), (kv_heads, positions, _) = query.shape, keys.shape
    shared, cap = heads // kv_heads, op.number("softcap", 0.0)
    for head in range(kv_heads):
        cached = b.whole(keys, dim, head * positions, (head + 1) * positions, copies=_copies(tiling))
        for row in range(b.count):
            b.see(position, b.first + row, _window(op), positions)
            r0 = row * heads + head * shared
            scaled = b.tile(f"scaled {y.name}", shared, dim, "f32")
            b.map("scale", scaled, b.part(query, dim, r0, r0 + shared), numbers=(op.number("scale"),))
            turned, raw = b.seen(f"turned {y.name}", dim, positions), b.seen(f"raw {y.name}", shared, positions)
            b.map("seen", turned, cached, numbers=(1, 1))
            b.matmul(raw, scaled, turned)
            if cap:
                b.map("softcap", raw, raw, numbers=(cap,))
            target = b.made(y, positions, r0, r0 + shared)
            b.map("spread", target, raw)
            b.done(y, target, positions, r0, r0 + shared)


def softmax(b: Builder, op: Op, tiling: Tiling | None) -> None:
    (x, position), (y,) = op.inputs, op.outputs
    _, heads, positions = x.shape
    for row in range(b.count):
        b.see(position, b.first + row, _window(op), positions)
        r0, r1 = row * heads, (row + 1) * heads
        part, one = b.seen(f"part {y.name}", heads, positions), b.tile(f"one {y.name}", heads, 1, "f32")
        b.map("seen", part, b.part(x, positions, r0, r1))
        b.reduce("max", one, part)
        b.map("subtract", part, part, one)
        b.map("exp", part, part)
        b.reduce("sum", one, part)
        b.map("divide", part, part, one)
        target = b.made(y, positions, r0, r1)
        b.map("spread", target, part)
        b.done(y, target, positions, r0, r1)


def mix(b: Builder, op: Op, tiling: Tiling | None) -> None:
    (weights, values, position), (y,) = op.inputs, op.outputs
    (_, heads, positions), (kv_heads, _, dim) = weights.shape, values.shape
    shared = heads // kv_heads
    for head in range(kv_heads):
        cached = b.whole(values, dim, head * positions, (head + 1) * positions, copies=_copies(tiling))
        for row in range(b.count):
            b.see(position, b.first + row, _window(op), positions)
            r0 = row * heads + head * shared
            part, looked_at = b.seen(f"part {y.name}", shared, positions), b.seen(f"looked_at {y.name}", dim, positions, turned=True)
            b.map("seen", part, b.part(weights, positions, r0, r0 + shared))
            b.map("seen", looked_at, cached, numbers=(1,))
            target = b.made(y, dim, r0, r0 + shared)
            b.matmul(target, part, looked_at)
            b.done(y, target, dim, r0, r0 + shared)
