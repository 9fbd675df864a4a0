"""Sees every attempt of this process to reach another one, through the interpreter's audit events: no library can go around it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_EVENTS = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}
_watching: list[list[tuple[str, object]]] = []


def _hook(event: str, args: tuple[object, ...]) -> None:
    if _watching and event in _EVENTS:
        for seen in _watching:
            seen.append((event, args[1] if event == "socket.connect" else args[0]))


sys.addaudithook(_hook)


@contextmanager
def network_spy() -> Iterator[list[tuple[str, object]]]:
    """The list of (event, address) grows while the block runs."""
    seen: list[tuple[str, object]] = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)
