"""Appends decisions to a file, without any text: what `hybrid route replay` reads. Opt-in; see `router/record.py` for what is kept."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes, token_hex

import msgspec

from ...router.decision import Decision
from ...router.record import record_of
from ...router.request import RouteContext, RouteRequest
from ...shared_protocol.errors import ConfigError

KEY_BYTES = 32
log = logging.getLogger(__name__)


class Recorder:
    """Thread-safe. The key of the hashes stands beside the file, in `PATH.key`; whoever deletes it makes them meaningless.

    Raises ConfigError when the file or its key cannot be used. A line that cannot be written later is counted in `lost` and logged once:
    an answer never fails for it.
    """

    def __init__(self, path: str | Path, wall: Callable[[], float]) -> None:
        """`wall`: seconds since 1970."""
        self.lost = 0
        self._wall = wall
        self._lock = threading.Lock()
        try:
            self._key = _key(Path(f"{path}.key"))
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(
                f"cannot record to {path}: {error.strerror}", param="record", hint="name a file that can be written"
            ) from None

    def record(self, request: RouteRequest, context: RouteContext, decision: Decision) -> None:
        try:
            line = msgspec.json.encode(record_of(request, context, decision, key=self._key, time=self._wall())) + b"\n"
            with self._lock:  # one write each: lines of two processes are not mixed
                if os.write(self._file, line) < len(line):
                    raise OSError("the disk is full")
        except Exception as error:
            if not self.lost:
                log.warning("decisions are no longer recorded: %s", type(error).__name__)
            self.lost += 1

    def close(self) -> None:
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


def _key(path: Path) -> bytes:
    """Made at the first use, whole or not at all; of two processes that make it at once, one wins for both."""
    if not path.exists():
        made = path.with_name(f"{path.name}.{os.getpid()}.{token_hex(4)}.new")
        file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(token_bytes(KEY_BYTES))
            with suppress(FileExistsError):
                os.link(made, path)
        finally:
            made.unlink()
    found = path.read_bytes()
    if len(found) != KEY_BYTES:
        raise ConfigError(f"{path} holds no key of {KEY_BYTES} bytes", param="record", hint="delete it, and hashes begin anew") from None
    return found
