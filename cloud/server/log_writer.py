"""A stream for logs that never makes its writer wait: a pipe that nobody reads must not stop the server.

event loop ──write──► queue ──► thread ──► stderr
                       full: lines are dropped, and their number is written once there is room
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from typing import TextIO

MAX_LINES = 10_000  # that wait
LAST_WORDS_S = 2.0  # for writing them at the end


class LogWriter:
    """`write` whole lines, from any thread. `close` waits for those that are left, but not for long; it is called at exit."""

    def __init__(self, stream: TextIO, max_lines: int = MAX_LINES) -> None:
        self._stream = stream
        self._max_lines = max_lines
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._closed = False
        self._change = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="hybrid-log", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def write(self, text: str) -> None:
        with self._change:
            if len(self._lines) >= self._max_lines:
                self._dropped += 1
                return
            self._lines.append(text)
            self._change.notify()

    def flush(self) -> None:
        """The thread flushes after every line."""

    def close(self, timeout_s: float = LAST_WORDS_S) -> None:
        with self._change:
            self._closed = True
            self._change.notify()
        self._thread.join(timeout_s)
        atexit.unregister(self.close)

    def _run(self) -> None:
        while (text := self._next()) is not None:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):  # nobody is there to read
                return

    def _next(self) -> str | None:
        with self._change:
            while not self._lines and not self._closed:
                self._change.wait()
            if not self._lines:
                return None
            told = f'{{"event": "log", "message": "{self._dropped} lines were dropped"}}\n' if self._dropped else ""
            self._dropped = 0
            return told + self._lines.popleft()
