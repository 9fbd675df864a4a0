"""A program on a terminal of its own, driven as a person would."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType

HYBRID = [sys.executable, "-m", "hybrid.apps.cli.main"]
PATIENCE_S = 120.0  # of a test that waits for words that do not come
PRESS_AGAIN_S = 1.0


class Terminal:
    """`type` sends keys, `read_until` waits for words and returns all that came since the last wait."""

    def __init__(self, *arguments: str, environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        told = {**os.environ, "TERM": "dumb", **environment}
        self.process = subprocess.Popen(
            [*HYBRID, *arguments], stdin=slave, stdout=slave, stderr=slave, env=told, start_new_session=True, preexec_fn=_own_terminal
        )
        os.close(slave)
        self._seen = ""

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read_until(self, words: str) -> str:
        while words not in self._seen:
            ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
            assert ready, f"{words!r} did not come; there is {self._seen!r}"
            self._seen += self._read()
        before, _, self._seen = self._seen.partition(words)
        return before

    def press_until(self, key: str, words: str) -> str:
        """Press `key`, and again after a while without an answer, until `words` come.

        The interpreter notices an interrupt only if it comes while readline waits for a key: one that comes while readline
        echoes the key before is lost, and a person would press again.
        """
        for _ in range(int(PATIENCE_S / PRESS_AGAIN_S)):
            self.type(key)
            while words not in self._seen and select.select([self._master], [], [], PRESS_AGAIN_S)[0]:
                self._seen += self._read()
            if words in self._seen:
                break
        return self.read_until(words)

    def read_some(self) -> str:
        """Whatever comes next."""
        some, self._seen = self._seen or self._read(), ""
        return some

    def end(self) -> int:
        """Wait for the program's end; its exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def _read(self) -> str:
        try:
            return os.read(self._master, 4096).decode(errors="replace")
        except OSError:  # Linux's word for: nobody has the other side open any more
            return ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def _own_terminal() -> None:
    """Make the slave side the controlling terminal, so that Ctrl-C is a signal."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
