"""What a hostile input may cost: steps of Python, and memory. Counted, so that a busy machine changes nothing."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType

MAX_STEPS = 3_000_000  # lines of Python; the costliest kept input needs a third
MAX_BYTES = 64 << 20


class TooMany(BaseException):
    """Not an Exception: nothing under test may catch it."""


def within_bounds(run: Callable[[bytes], None], data: bytes, max_steps: int = MAX_STEPS) -> tuple[int, int]:
    """Run, and return the lines of Python that ran and the peak of the memory taken. Raises TooMany when either has no bound."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., object]:
        nonlocal steps
        steps += 1
        if steps > max_steps:
            raise TooMany(f"more than {max_steps} steps")
        return trace

    before = sys.gettrace()
    tracemalloc.start()
    sys.settrace(trace)
    try:
        run(data)
    finally:
        sys.settrace(before)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    if peak > MAX_BYTES:
        raise TooMany(f"{peak} bytes of memory for an input of {len(data)}")
    return steps, peak
