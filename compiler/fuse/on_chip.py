"""What fusion asks of chips: whether one of them takes a fused operation, and whether that is faster than its parts."""

from __future__ import annotations

import math

from ...npu_backends.base import Adapter
from ...npu_backends.ir.op import Op
from ...npu_backends.tile.kernels import nameless
from ...shared_protocol.compile_errors import DoesNotFit
from .fuse import Fits, Price
from .room import has_room


def fits_on(*chips: Adapter) -> Fits:
    """Fused operations that one of the chips takes, and has room for."""
    return lambda op: any(has_room(op, chip.spec) and chip.supports(op) is None for chip in chips)


def seconds_on(*chips: Adapter) -> Price:
    """Seconds of an operation on the chip that is the fastest at it; infinite where all refuse it. Layers are alike, so each price is
    asked for once.

    Bytes that are saved do not always save time: a chip that computes strip by strip reads the weights once for each strip.
    """
    known: dict[Op, float] = {}

    def price(op: Op) -> float:
        alike = nameless(op)
        if alike not in known:
            known[alike] = min(_seconds(op, chip) for chip in chips)
        return known[alike]

    return price


def _seconds(op: Op, chip: Adapter) -> float:
    if chip.supports(op) is not None:
        return math.inf
    try:
        return chip.spec.seconds(chip.cost(op, None).cycles)
    except DoesNotFit:
        return math.inf
