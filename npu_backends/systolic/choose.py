"""Which tiling an operation gets on a chip, and how a tiling is made smaller until its kernel fits the SRAM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

from ...shared_protocol.compile_errors import DoesNotFit
from ..base import Tiling
from ..ir.kinds import GROUP
from ..ir.op import Op, flat
from ..ir.value import BITS
from ..ir.work import WEIGHTS, product_of
from ..spec import Spec
from ..tile.epilogue import TILED, epilogues_of
from ..tile.kernels import kernel_of, nameless, rows_of
from .choices import several
from .gemm import Gemm, Place
from .pipeline import count
from .tiling import tile_product

PLACES: tuple[Place, ...] = ("sram", "dram")
TIMES = (4, 8, 16)
STRIPS = 2  # numbers of rows that are compared: the most that fit, and half as many
ATTENTION = ("scores", "mix", "cache_write")  # read or write a cache, head by head


def tiling_of(op: Op, spec: Spec) -> Tiling | None:
    """None for one that has no product. Raises DoesNotFit where nothing fits the SRAM."""
    return _tiling_of(nameless(op), spec) if op.kind == "fused" or product_of(op) else None


@lru_cache(maxsize=1024)
def _tiling_of(op: Op, spec: Spec) -> Tiling | None:
    if op.kind in TILED:
        return fitting(op, tile_product(_gemm(op), spec).tiling, spec)
    if op.kind != "fused":
        return fitting(op, _one_row(spec), spec)
    found: list[Tiling] = []
    sizes = 0
    for rows in _halves(rows_of(op)):
        tilings = list(_strips(op, rows, spec))
        found, sizes = found + tilings, sizes + bool(tilings)
        if sizes == STRIPS:
            break
    if not found:
        return fitting(op, _one_row(spec), spec)
    return min(found, key=lambda tiling: _taken(op, tiling, spec))


def check_room(op: Op, spec: Spec) -> None:
    """Raises DoesNotFit for an operation whose smallest tiles are too large for the chip."""
    if op.kind != "fused":
        fitting(op, tiling_of(op, spec), spec)
    elif not any(True for rows in _halves(rows_of(op)) for _ in _strips(op, rows, spec)):
        fitting(op, _one_row(spec), spec)


def _one_row(spec: Spec) -> Tiling:
    return Tiling(spec.array.dataflows[0], 1, several(spec.array.cols), GROUP, "mnk")


def _taken(op: Op, tiling: Tiling, spec: Spec) -> tuple[int, int]:
    counted = count(kernel_of(op, tiling), spec)
    return counted.cycles, counted.dram_bytes


def _strips(op: Op, rows: int, spec: Spec) -> Iterator[Tiling]:
    """Tilings of a fused operation for strips of so many rows, if they fit: as for a product of what is in SRAM, as for one of its own,
    whose sums stay until they are whole, and with some multiples of the array's outputs and all inputs."""
    products = [_gemm(inner) for inner in flat((op,)) if inner.kind in TILED]
    if not products:
        tilings = [replace(_one_row(spec), tm=rows)]
    else:
        largest, room = replace(max(products, key=lambda gemm: gemm.macs), m=rows), spec.sram.bytes - _strip_bytes(op, rows)
        tilings = []
        for place in PLACES:
            with suppress(DoesNotFit):
                tilings.append(tile_product(replace(largest, inputs_in=place, outputs_in=place), spec, room).tiling)
        outputs = {several(spec.array.cols) * times for times in TIMES}
        tilings += [Tiling(flow, rows, n, largest.k, "mnk") for flow in spec.array.dataflows for n in sorted(outputs) if n < largest.n]
    for tiling in tilings:
        with suppress(DoesNotFit):
            if (chosen := fitting(op, replace(tiling, tm=rows), spec)) and chosen.tm == rows:
                yield chosen


def _strip_bytes(op: Op, rows: int) -> int:
    """Of all that a fused operation holds of a strip of rows, read or made, beside weights and tables."""
    epilogues = epilogues_of(op.body)
    held = {value.name: value.bytes for inner in op.body for value in inner.outputs if inner.kind not in ("cache_write", "reshape")}
    held = {name: size for name, size in held.items() if name not in epilogues.local}
    for inner in op.body:
        if inner.kind not in ATTENTION and inner.name not in epilogues.taken:
            fixed = inner.inputs[WEIGHTS.get(inner.kind, slice(0, 0))]
            held |= {value.name: 2 * value.bytes for value in inner.inputs if value not in fixed and value in op.inputs}
    return sum(held.values()) * rows // rows_of(op)


def _gemm(op: Op) -> Gemm:
    (m, n), k = op.outputs[0].shape, op.inputs[0].shape[1]
    bits = BITS[op.inputs[2].dtype] + 32 * (len(op.inputs) - 3) / GROUP if op.kind == "linear_g32" else 8
    return Gemm(m, n, k, weight_bits=bits)


def _halves(size: int) -> Iterator[int]:
    """All of it, then half of it, down to one."""
    while size > 1:
        yield size
        size = -(-size // 2)
    yield 1


def fitting(op: Op, tiling: Tiling | None, spec: Spec) -> Tiling | None:
    """The tiling, or one with fewer outputs, inputs or rows in a tile, in that order, so that its kernel fits. What the array cannot keep
    in place is replaced by what it usually does. Raises DoesNotFit."""
    if tiling and tiling.dataflow not in spec.array.dataflows:
        tiling = replace(tiling, dataflow=spec.array.dataflows[0])
    return _fitting(nameless(op), tiling, spec)


@lru_cache(maxsize=4096)
def _fitting(op: Op, tiling: Tiling | None, spec: Spec) -> Tiling | None:
    while (needed := kernel_of(op, tiling).sram_bytes) > spec.sram.bytes:
        smaller = _smaller(op, tiling, spec) if tiling else None
        if smaller is None:
            raise DoesNotFit(f"its smallest tiles need {needed} bytes of SRAM, {spec.name} has {spec.sram.bytes}")
        tiling = smaller
    return tiling


def _smaller(op: Op, tiling: Tiling, spec: Spec) -> Tiling | None:
    cols = spec.array.cols
    if tiling.tn > cols:
        return replace(tiling, tn=max(cols, tiling.tn * 7 // 8 // cols * cols))
    if tiling.tk > GROUP:
        return replace(tiling, tk=max(GROUP, tiling.tk // 2 // GROUP * GROUP))
    if tiling.tm > 1:
        return replace(tiling, tm=-(-tiling.tm // 2))
    attends = any(inner.kind in ("scores", "mix") for inner in flat((op,)))
    return replace(tiling, tn=1) if attends and tiling.tn > 1 and not any(inner.kind in TILED for inner in flat((op,))) else None
