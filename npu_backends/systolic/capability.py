"""What a chip refuses, and why, in the words of the report."""

from __future__ import annotations

from functools import lru_cache

from ...shared_protocol.compile_errors import DoesNotFit
from ..base import Tiling
from ..ir.kinds import GROUP
from ..ir.op import Op, flat
from ..spec import Spec
from ..tile.computations import key_of
from ..tile.kernels import kernel_of, nameless
from ..tile.kernels import refusal as no_kernel
from .choose import check_room
from .intrinsics import INTRINSICS

WHOLE = Tiling("os", 1 << 40, 1 << 40, GROUP << 40, "mnk")  # every product in one tile: the fewest instructions to look at


def refusal(op: Op, spec: Spec) -> str | None:
    """Why an operation does not run on a chip, or None."""
    return _refusal(nameless(op), spec)


@lru_cache(maxsize=4096)
def _refusal(op: Op, spec: Spec) -> str | None:
    if reason := no_kernel(op) or _lacking(op, spec):
        return reason
    try:
        check_room(op, spec)
    except DoesNotFit as error:
        return error.message
    return None


def _lacking(op: Op, spec: Spec) -> str | None:
    """The first intrinsic that the chip does not have."""
    formats = ", ".join(spec.weight_formats)
    for inner in flat((op,)):
        floats = [value.dtype for value in inner.inputs[1:2] if inner.kind in ("scores", "mix")]
        if floats and not {floats[0], "f32"} & set(spec.weight_formats):
            return f"{inner.kind} multiplies {floats[0]} with floats, and the array of {spec.name} takes {formats} only"
    kernel = kernel_of(op, WHOLE)
    for instruction in kernel.instructions:
        if instruction.op in ("load", "store", "see"):
            continue
        key = key_of(kernel, instruction)
        intrinsic = INTRINSICS.get(key)
        if intrinsic is None:
            return f"{spec.name} has nothing for {' of '.join(key)}"
        if intrinsic.format not in (None, "float", *spec.weight_formats):
            return f"its weights are {intrinsic.format}, and the array of {spec.name} takes {formats} only"
        if intrinsic.lane_ops and not spec.vector_lanes:
            return f"{instruction.function or instruction.op} is float arithmetic, and {spec.name} has no vector lanes"
    return None
