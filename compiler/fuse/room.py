"""Whether a fused operation has room on a chip: what must lie in the memory on the chip at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...npu_backends.ir.op import Op, flat
from ...npu_backends.ir.value import Value
from ...npu_backends.ir.work import WEIGHTS
from ...npu_backends.spec import Spec
from .rules import LINEAR, PRODUCTS, needs_row

WIDEST = 4  # bytes of an element between the operations of a body


def has_room(op: Op, spec: Spec) -> bool:
    return working_set(op, spec) <= spec.sram.bytes


def working_set(op: Op, spec: Spec) -> int:
    """Bytes of one strip of rows, as many as the array has, beside the smallest tiles that keep the array at work.

    Where some operation needs whole rows, all of the strip's values that are alive at once are held whole; else two tiles of each.
    Matrices and caches come in tiles. Attention takes the heads that share keys one group at a time.
    """
    body = flat((op,))
    product = next(inner for inner in body if inner.kind in PRODUCTS)
    rows = product.outputs[0].shape[0]
    alike = 1 if product.kind in LINEAR else product.inputs[0].shape[1] // product.inputs[1].shape[0]  # heads that are rows of one product
    strip, whole, groups = min(rows, -(-spec.array.rows // alike)), needs_row(op), _groups_of_heads(body)

    def held(value: Value) -> int:
        if value.shape[0] != rows:
            return value.bytes
        row = -(-value.bytes // (rows * groups.get(value.name, 1)))
        head = value.shape[-1] if len(value.shape) == 3 else 0  # a head is turned as a whole
        return strip * (row if whole else min(row, 2 * WIDEST * max(spec.array.cols, head)))

    return spec.smallest_tile_bytes + max(sum(map(held, alive)) for alive in _alive(body)) + strip * _table_row(body)


def _alive(body: Sequence[Op]) -> Iterator[list[Value]]:
    """For each operation, what is on the chip while it runs, but for what comes in tiles or by rows of a table."""
    uses = [[*(value for number, value in enumerate(op.inputs) if not _streams(op, number)), *op.outputs] for op in body]
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    values: dict[str, Value] = {}
    for step, used in enumerate(uses):
        for value in used:
            values[value.name] = value
            first.setdefault(value.name, step)
            last[value.name] = step
    for step in range(len(body)):
        yield [value for name, value in values.items() if first[name] <= step <= last[name]]


def _streams(op: Op, number: int) -> bool:
    weights = range(len(op.inputs))[WEIGHTS[op.kind]] if op.kind in WEIGHTS else ()
    if op.kind in ("scores", "mix"):
        return number == 1
    return (op.kind in LINEAR or op.kind == "rotary") and number in weights


def _table_row(body: Sequence[Op]) -> int:
    """Bytes that one row reads of the tables of a rotation."""
    tables = {value.name: value.bytes // value.shape[0] for op in body if op.kind == "rotary" for value in op.inputs[WEIGHTS["rotary"]]}
    return sum(tables.values())


def _groups_of_heads(body: Sequence[Op]) -> dict[str, int]:
    """Of weights over positions, in how many parts they are made and used."""
    groups: dict[str, int] = {}
    for op in body:
        if op.kind == "scores":
            groups[op.outputs[0].name] = op.inputs[1].shape[0]
        elif op.kind == "softmax" and op.inputs[0].name in groups:
            groups[op.outputs[0].name] = groups[op.inputs[0].name]
        elif op.kind == "mix":
            groups[op.inputs[0].name] = op.inputs[1].shape[0]
    return groups
