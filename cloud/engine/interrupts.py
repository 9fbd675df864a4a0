"""Ctrl-C between steps, not within one: books that an interrupt leaves half written cannot be gone on with."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_held() -> Iterator[Callable[[], None]]:
    """Within, SIGINT waits until what is yielded is called, or until the end; then it takes the course that it would have taken.

    Signals reach the main thread alone: in any other, and where SIGINT ends the process or is ignored, nothing is held.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield lambda: None
        return
    handler: Callable[[int, FrameType | None], object] = before
    came = threading.Event()

    def let_through() -> None:
        if came.is_set():
            came.clear()
            handler(signal.SIGINT, None)  # the frame that it met holds buffers of the step, which must grow and shrink again

    signal.signal(signal.SIGINT, lambda number, frame: came.set())
    try:
        yield let_through
    finally:
        signal.signal(signal.SIGINT, handler)
        let_through()
