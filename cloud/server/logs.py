"""Logs as lines of JSON, without the words of exceptions: they may quote a prompt."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback

_DEPTH = 8  # places of a fault


def places_of(fault: BaseException) -> list[str]:
    """Where it came from, the innermost last: files, lines and functions, no values."""
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(fault.__traceback__)[-_DEPTH:]]


class JsonLines(logging.Formatter):
    """A record whose message is a dict becomes that object; any other becomes {"event": "log", "message"}."""

    def format(self, record: logging.LogRecord) -> str:
        told = record.msg if isinstance(record.msg, dict) else {"event": "log", "message": record.getMessage()}
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


def log_to_stderr(level: str) -> None:
    """Send this program's logs to stderr; other libraries only where they warn."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(is_no_denial)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("hybrid").setLevel(level.upper())
