"""Bytes that an operation moves between the chip and the memory outside of it."""

from __future__ import annotations

from ...npu_backends.ir.kinds import KINDS
from ...npu_backends.ir.op import Op
from ...npu_backends.ir.work import work_of


def traffic(op: Op) -> int:
    """What it reads and writes; a view alone moves nothing."""
    if op.kind in KINDS and KINDS[op.kind].view:
        return 0
    work = work_of(op)
    return work.bytes_in + work.bytes_weights + work.bytes_out
