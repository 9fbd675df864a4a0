"""Kernels of operations that compute every row alone: norms, activations, quantisation, rotation, look-ups."""

from __future__ import annotations

from ..base import Tiling
from ..ir.kinds import GROUP
from ..ir.op import Op
from ..ir.value import Value
from .builder import Builder
from .program import Part


def _lines(b: Builder, value: Value) -> int:
    """Lines of the last size that a row of the operation has: 1, or heads."""
    return value.elements // (b.rows * value.shape[-1])


def rms_norm(b: Builder, op: Op, tiling: Tiling | None) -> None:
    (x, gain), (y,) = op.inputs, op.outputs
    width, lines = x.shape[-1], _lines(b, x)
    for start, stop in b.chunks():
        r0, r1 = start * lines, stop * lines
        source, gains, target = b.part(x, width, r0, r1), b.whole(gain, width, 0, 1, copies=1), b.made(y, width, r0, r1)
        b.map("multiply", target, source, source)
        mean = b.tile(f"mean {y.name}", r1 - r0, 1, "f32")
        b.reduce("mean", mean, target)
        b.map("inverse_root", mean, mean, numbers=(op.number("eps"),))
        b.map("multiply", target, source, mean)
        b.map("multiply", target, target, gains)
        b.done(y, target, width, r0, r1)


def quantise(b: Builder, op: Op, tiling: Tiling | None) -> None:
    (x,), (codes, scales) = op.inputs, op.outputs
    width = x.shape[1]
    numbers = (op.number("scale"),) if op.attributes else ()
    for r0, r1 in b.chunks():
        source = b.part(x, width, r0, r1)
        target, scale = b.made(codes, width, r0, r1), b.made(scales, 1, r0, r1)
        b.emit("quantise", (target, scale), (source,), numbers=numbers)
        b.done(codes, target, width, r0, r1)
        b.done(scales, scale, 1, r0, r1)


def read_tile(b: Builder, op: Op, r0: int, r1: int, c0: int, c1: int) -> list[Part]:
    """Tiles of the inputs of an operation that computes element by element; a vector for all rows has one row."""
    shape, width = op.outputs[0].shape, op.outputs[0].shape[-1]
    return [b.part(x, width, r0, r1, c0, c1) if x.shape == shape else b.whole(x, width, 0, 1, c0, c1, copies=1) for x in op.inputs]


def elementwise(b: Builder, op: Op, tiling: Tiling | None) -> None:
    width, lines = op.outputs[0].shape[-1], _lines(b, op.outputs[0])
    for start, stop in b.chunks():
        elementwise_tile(b, op, start * lines, stop * lines, 0, width)


def elementwise_tile(b: Builder, op: Op, r0: int, r1: int, c0: int, c1: int) -> None:
    (y,), width = op.outputs, op.outputs[0].shape[-1]
    ins, target = read_tile(b, op, r0, r1, c0, c1), b.made(y, width, r0, r1, c0, c1)
    b.map(op.kind, target, *ins, numbers=(op.number("cap"),) if op.kind == "softcap" else ())
    b.done(y, target, width, r0, r1, c0, c1)


def rotary(b: Builder, op: Op, tiling: Tiling | None) -> None:
    (x, cosines, sines, position), (y,) = op.inputs, op.outputs
    (_, heads, dim), pairs = x.shape, cosines.shape[1]
    for row in range(b.count):
        tables = [b.row_at(table, pairs, b.first + row, position, 0) for table in (cosines, sines)]
        source, target = b.part(x, dim, row * heads, (row + 1) * heads), b.made(y, dim, row * heads, (row + 1) * heads)
        b.emit("rotate", (target,), (source, *tables), numbers=(op.integer("interleaved"),))
        b.done(y, target, dim, row * heads, (row + 1) * heads)


def cache_write(b: Builder, op: Op, tiling: Tiling | None) -> None:
    """Rows go to their positions in every head of the cache; where the cache is known under a new name outside, under that one."""
    (cache, x, position), (after,) = op.inputs, op.outputs
    heads, positions, dim = cache.shape
    target = after if b.is_output(after) else cache
    if target is cache:
        b.alias(after, cache)
    for row in range(b.count):
        for head in range(heads):
            tile = b.part(x, dim, row * heads + head, row * heads + head + 1)
            at = head * positions + b.first + row
            b.emit("store", (Part(b.number(target), dim, at, at + 1, 0, dim, b.number(position), 0),), (tile,))
    b.changed(target)


def embed(b: Builder, op: Op, tiling: Tiling | None) -> None:
    *tables, ids = op.inputs
    (y,), width = op.outputs, op.outputs[0].shape[1]
    for row in range(b.count):
        target = b.made(y, width, row, row + 1)
        rows = [b.row_at(table, table.elements // table.shape[0], 0, ids, b.first + row) for table in tables]
        b.map("convert", target, rows[0])
        if op.kind == "embed_i8":
            b.map("multiply", target, target, rows[1])
        elif op.kind == "embed_g32":
            groups = width // GROUP
            shaped = Part(target.place, GROUP, target.r0 * groups, target.r1 * groups, 0, GROUP)
            for function, scales in zip(("multiply", "add"), rows[1:], strict=False):
                b.map(function, shaped, shaped, Part(scales.place, 1, 0, groups, 0, 1))
        b.done(y, target, width, row, row + 1)


def gather(b: Builder, op: Op, tiling: Tiling | None) -> None:
    (x, index), (y,) = op.inputs, op.outputs
    for row in range(b.count):
        b.done(y, b.row_at(x, x.shape[1], 0, index, b.first + row), x.shape[1], row, row + 1)


def reshape(b: Builder, op: Op, tiling: Tiling | None) -> None:
    """Nothing moves. Where the name is known outside, and what it views is not, the strip is stored under it."""
    (x,), (y,) = op.inputs, op.outputs
    b.alias(y, x)
    size = x.elements // b.rows
    if b.is_output(y) and b.op.kind == "fused":
        b.done(y, b.part(x, size, 0, b.count), size, 0, b.count)
