"""What fusion asks of one chip: whether it takes a fused operation, and whether that is faster than its parts."""

from __future__ import annotations

import math

from ...npu_backends.base import Adapter
from ...npu_backends.ir.op import Op
from .fuse import Fits, Price
from .room import has_room


def fits_chip(chip: Adapter) -> Fits:
    """Fused operations that the chip takes, and has room for."""
    return lambda op: has_room(op, chip.spec) and chip.supports(op) is None


def cycles_on(chip: Adapter) -> Price:
    """Cycles of an operation; infinite where the chip refuses it, so that whatever it takes is better. Bytes that are saved do not always
    save time: a chip that computes strip by strip reads the weights once for each strip."""

    def price(op: Op) -> float:
        return math.inf if chip.supports(op) is not None else float(chip.cost(op, None).cycles)

    return price
