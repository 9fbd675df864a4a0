"""Logs as lines of JSON, without the words of exceptions: they may quote a prompt."""

from __future__ import annotations

import json
import logging
import math
import sys
import time
import traceback
from collections.abc import Callable

from .log_writer import LogWriter

_DEPTH = 8  # places of a fault
_SENTENCES = 100  # remembered


def places_of(fault: BaseException) -> list[str]:
    """Where it came from, the innermost last: files, lines and functions, no values."""
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(fault.__traceback__)[-_DEPTH:]]


class JsonLines(logging.Formatter):
    """A record whose message is a dict becomes that object; any other becomes {"event": "log", "message"}, its first line.

    asyncio writes objects into the lines after it, exceptions with their words among them.
    """

    def format(self, record: logging.LogRecord) -> str:
        told = record.msg if isinstance(record.msg, dict) else {"event": "log", "message": record.getMessage().partition("\n")[0]}
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            **told,
        }
        fault = record.exc_info[1] if record.exc_info else None
        if fault is not None:
            line |= {"kind": type(fault).__name__, "places": places_of(fault)}
        return json.dumps(line, ensure_ascii=False)


def is_no_denial(record: logging.LogRecord) -> bool:
    """Whether a record tells of more than a WebSocket that was denied: uvicorn calls that an error, and it has a line of its own."""
    return record.msg != "ASGI callable returned without completing handshake."


class NoFlood:
    """A filter that lets the same sentence of a library through once in `pause_s` seconds of `clock`.

    Out of file descriptors, asyncio logs thousands of times a second that it cannot accept a connection.
    """

    def __init__(self, pause_s: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause_s = pause_s
        self._clock = clock
        self._said: dict[tuple[str, str], float] = {}  # library and beginning of its sentence -> when

    def __call__(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] == "hybrid":
            return True
        now, key = self._clock(), (record.name, str(record.msg)[:80])
        if now - self._said.get(key, -math.inf) < self._pause_s:
            return False
        if len(self._said) >= _SENTENCES:
            self._said.clear()
        self._said[key] = now
        return True


def log_to_stderr(level: str) -> None:
    """Send this program's logs to stderr; other libraries only where they warn."""
    handler = logging.StreamHandler(LogWriter(sys.stderr) if sys.stderr is not None else None)
    handler.setFormatter(JsonLines())
    handler.addFilter(is_no_denial)
    handler.addFilter(NoFlood())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("hybrid").setLevel(level.upper())
