"""Which tiling an operation gets on a chip, and how a tiling is made smaller until its kernel fits the SRAM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ...shared_protocol.errors import DoesNotFit
from ..base import Tiling
from ..ir.kinds import GROUP
from ..ir.op import Op, flat
from ..ir.value import BITS
from ..ir.work import Product, product_of
from ..spec import Spec
from ..tile.kernels import TILED, kernel_of, nameless, rows_of
from .gemm import Gemm
from .tiling import tile_product

PLAIN = Tiling("os", 1, 1, GROUP, "mnk")  # of what has no product: one row at a time


def has_tiling(op: Op) -> bool:
    return any(inner.kind in TILED for inner in flat((op,)))


def largest_product(op: Op) -> tuple[Op, Product]:
    """Of an operation that has a tiling, the one that it is chosen for, and its sizes."""
    products = [(inner, product_of(inner)) for inner in flat((op,)) if inner.kind in TILED]
    inner, product = max(products, key=lambda pair: pair[1].macs if pair[1] else 0)
    assert product is not None
    return inner, product


def tiling_of(op: Op, spec: Spec) -> Tiling | None:
    """None for an operation without a product of integers. Raises DoesNotFit where nothing fits the SRAM."""
    return _tiling_of(nameless(op), spec) if has_tiling(op) else None


@lru_cache(maxsize=1024)
def _tiling_of(op: Op, spec: Spec) -> Tiling:
    inner, product = largest_product(op)
    bits = BITS[inner.inputs[2].dtype] + 32 * (len(inner.inputs) - 3) / GROUP if inner.kind == "linear_g32" else 8
    if op.kind != "fused":
        gemm = Gemm(product.m, product.n, product.k, weight_bits=bits)
        return fitting(op, tile_product(gemm, spec).tiling, spec) or PLAIN
    made = {value.name: value for part in op.body for value in part.outputs}
    row_bytes = sum(value.bytes for value in made.values()) // rows_of(op)
    refused = DoesNotFit(f"{op.kind} needs {row_bytes} bytes of SRAM for a row, {spec.name} has {spec.sram.bytes}")
    for rows in _halves(product.m):
        room = spec.sram.bytes - rows * row_bytes
        try:
            gemm = Gemm(rows, product.n, product.k, weight_bits=bits, inputs_in="sram", outputs_in="sram")
            chosen = tile_product(gemm, spec, room).tiling
            return fitting(op, replace(chosen, tm=rows), spec) or PLAIN
        except DoesNotFit as error:
            refused = error
    raise refused


def _halves(size: int) -> Iterator[int]:
    while size > 1:
        yield size
        size = -(-size // 2)
    yield 1


def fitting(op: Op, tiling: Tiling | None, spec: Spec) -> Tiling | None:
    """The tiling, or one with fewer outputs, inputs or rows in a tile, in that order, so that its kernel fits. Raises DoesNotFit."""
    return _fitting(nameless(op), tiling, spec)


@lru_cache(maxsize=4096)
def _fitting(op: Op, tiling: Tiling | None, spec: Spec) -> Tiling | None:
    while (needed := kernel_of(op, tiling).sram_bytes) > spec.sram.bytes:
        smaller = _smaller(tiling, spec) if tiling else None
        if smaller is None:
            raise DoesNotFit(f"its smallest tiles need {needed} bytes of SRAM, {spec.name} has {spec.sram.bytes}")
        tiling = smaller
    return tiling


def _smaller(tiling: Tiling, spec: Spec) -> Tiling | None:
    cols = spec.array.cols
    if tiling.tn > cols:
        return replace(tiling, tn=max(cols, tiling.tn * 7 // 8 // cols * cols))
    if tiling.tk > GROUP:
        return replace(tiling, tk=max(GROUP, tiling.tk // 2 // GROUP * GROUP))
    return replace(tiling, tm=-(-tiling.tm // 2)) if tiling.tm > 1 else None
