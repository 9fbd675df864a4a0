"""From an operation and a tiling to its kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from ..base import Tiling
from ..ir.op import Op, flat
from ..ir.value import Value
from . import attention, products, rows
from .builder import Builder, split
from .epilogue import TILED, epilogues_of
from .program import Kernel

KERNELS: Mapping[str, Callable[[Builder, Op, Tiling | None], None]] = MappingProxyType(
    {
        "embed": rows.embed,
        "embed_i8": rows.embed,
        "embed_g32": rows.embed,
        "rms_norm": rows.rms_norm,
        "linear": products.linear,
        "quantise": rows.quantise,
        "linear_i8": products.linear_i8,
        "linear_g32": products.linear_g32,
        "rotary": rows.rotary,
        "cache_write": rows.cache_write,
        "scores": attention.scores,
        "softmax": attention.softmax,
        "mix": attention.mix,
        "add": rows.elementwise,
        "multiply": rows.elementwise,
        "silu": rows.elementwise,
        "gelu": rows.elementwise,
        "softcap": rows.elementwise,
        "reshape": rows.reshape,
        "gather": rows.gather,
    }
)
PLACED = ("rotary", "cache_write", "scores", "softmax", "mix")  # their row's number counts


def rows_of(op: Op) -> int:
    """Rows that are computed one like the other."""
    match op.kind:
        case "fused":
            return rows_of(op.body[0])
        case "cache_write":
            return op.inputs[1].shape[0]
        case "reshape":
            return op.inputs[0].shape[0]
        case _:
            return op.outputs[0].shape[0]


def refusal(op: Op) -> str | None:
    """Why no kernel computes an operation, or None."""
    body = flat((op,))
    for inner in body:
        if inner.kind not in KERNELS:
            return f"there is no kernel for {inner.kind}"
    if op.kind != "fused":
        return None
    count, made = rows_of(op), {value.name for inner in body for value in inner.outputs}
    for inner in body:
        if inner.kind == "gather":
            return "gather takes rows of other strips, so it stands alone"
        if inner.kind in PLACED and rows_of(inner) != count:
            return f"{inner.kind} has {rows_of(inner)} rows, and the operations before it {count}"
        if inner.kind != "cache_write" and any(value.elements % count for value in inner.outputs):
            return f"{inner.kind} makes {inner.outputs[0]}, which is no whole number of {count} rows"
        common = inner.inputs[1:] if _same_for_all(inner) else ()
        if any(value.name in made and inner.kind != "rotary" for value in common):
            return f"{inner.kind} takes {common[0].name} for all rows, and it is made row by row"
    return None


def _same_for_all(op: Op) -> bool:
    return op.kind in ("rms_norm", "linear") or (op.kind in ("add", "multiply") and op.inputs[1].shape != op.inputs[0].shape)


def kernel_of(op: Op, tiling: Tiling | None) -> Kernel:
    """The kernel of an operation that `refusal` has nothing against. Operations that differ in their names only share one."""
    return _kernel(nameless(op), tiling)


@lru_cache(maxsize=1 << 14)
def nameless(op: Op) -> Op:
    """The operation with its values numbered in place of named."""
    numbers: dict[str, str] = {}

    def plain(value: Value) -> Value:
        return Value(numbers.setdefault(value.name, f"v{len(numbers)}"), value.shape, value.dtype)

    def turn(inner: Op) -> Op:
        return replace(
            inner,
            inputs=tuple(map(plain, inner.inputs)),
            outputs=tuple(map(plain, inner.outputs)),
            body=tuple(map(turn, inner.body)),
        )

    return turn(op)


@lru_cache(maxsize=1024)
def _kernel(op: Op, tiling: Tiling | None) -> Kernel:
    count = rows_of(op)
    alone = op.kind != "fused"
    strip = count if alone else min(tiling.tm if tiling else 1, count)
    body = flat((op,))
    epilogues = epilogues_of(body)
    b = Builder(op, count, epilogues.after, epilogues.local, chunk=1 if alone else strip)
    for first, stop in split(count, strip):
        b.first, b.count = first, stop - first
        for inner in body:
            if inner.name not in epilogues.taken:
                KERNELS[inner.kind](b, inner, tiling)
    tiled = any(inner.kind in TILED for inner in body)
    return Kernel(
        operands=tuple(value.dtype for value in b.operands),
        slots=tuple(b.slots),
        instructions=tuple(b.instructions),
        dataflow=tiling.dataflow if tiling else "os",
        streams=not tiled,
        waits=attention.one_head_at_a_time(tiling) and any(inner.kind in ("scores", "mix") for inner in body),
    )
