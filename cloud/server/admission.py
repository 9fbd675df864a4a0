"""How many requests are let in, and none while the server drains."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from ...shared_protocol.errors import Unavailable


class Admission:
    """Counts what is inside. Used from one event loop."""

    def __init__(self, limit: int, retry_after_s: float) -> None:
        self._limit = limit
        self._retry_after_s = retry_after_s
        self._inside = 0
        self._draining = False
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def inside(self) -> int:
        return self._inside

    @property
    def draining(self) -> bool:
        return self._draining

    def check(self) -> None:
        """Raise Unavailable, with the time to wait, when a request would be turned away now."""
        if self._draining:
            raise Unavailable("the server is shutting down", hint="ask again, or ask another", retry_after_s=self._retry_after_s)
        if self._inside >= self._limit:
            raise Unavailable(
                f"{self._inside} requests are being served, the limit is {self._limit}",
                hint="ask again a little later",
                retry_after_s=self._retry_after_s,
            )

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Hold a place; raises as `check` does."""
        self.check()
        self._inside += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()

    def close(self) -> None:
        """From now on nobody is let in."""
        self._draining = True

    async def empty(self) -> None:
        """Wait until nobody is inside."""
        await self._empty.wait()
