"""How the processor cuts operations: so that what it works on is about as large as its cache, which is no limit."""

from __future__ import annotations

from ..base import Tiling
from ..ir.op import Op, flat
from ..ir.semantics import AT_ONCE, EXACT
from ..ir.work import product_of
from ..spec import Spec
from ..tile.kernels import rows_of

MOST_ROWS = 32
FEWEST_OUTPUTS = 64


def tiling_of(op: Op, spec: Spec) -> Tiling | None:
    """None for an operation alone that has no product."""
    inputs = [inner.inputs[0].shape[-1] for inner in flat((op,)) if inner.kind in ("linear_i8", "linear_g32")]
    if not inputs and op.kind != "fused" and not product_of(op):
        return None
    deep = min(max(inputs, default=EXACT), EXACT)
    return Tiling(spec.array.dataflows[0], _rows(op, spec), max(FEWEST_OUTPUTS, AT_ONCE // deep), deep, "nmk")


def _rows(op: Op, spec: Spec) -> int:
    """Rows at a time: of a fused operation all that is made inside is held for as many."""
    rows = rows_of(op)
    made = sum(value.bytes for inner in op.body for value in inner.outputs if inner.kind not in ("cache_write", "reshape"))
    return max(1, min(rows, MOST_ROWS, spec.sram.bytes * rows // max(made, 1)))
