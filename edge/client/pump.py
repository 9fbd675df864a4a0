"""Runs the making of an answer in a task of its own, so that whoever reads it, slowly or not at all, holds nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Pump(Generic[T]):
    """The items of a generator, as they come; it is run to its end unless `close` ends it.

    A device answers one at a time: if it waited for a reader, one who turns away in the middle of a stream, or asks something else
    in between, would wait for ever. What is ahead of the reader is kept here: an answer, which is no more than a context holds.
    """

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        self._ahead: asyncio.Queue[T | _End] = asyncio.Queue()
        self._end: _End | None = None
        self._task = asyncio.create_task(_run(items, self._ahead))

    async def next(self) -> T | None:
        """The next item, None after the last. Raises, once, what the generator raised."""
        if self._end is not None:
            return None
        item = await self._ahead.get()
        if not isinstance(item, _End):
            return item
        self._end = item
        self._ahead.put_nowait(item)  # for whoever else waits
        error, item.error = item.error, None
        if error is not None:
            raise error
        return None

    async def finish(self) -> None:
        """Wait until nothing of the generator runs any more."""
        await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop the generator where it is, and wait until it has; whoever waits for an item gets None. May be called again."""
        self._end = self._end or _End()
        self._task.cancel()
        await self.finish()

    def __del__(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            if not self._task.done():
                self._task.get_loop().call_soon_threadsafe(self._task.cancel)


class _End:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


async def _run(items: AsyncGenerator[T, None], ahead: asyncio.Queue[T | _End]) -> None:
    end = _End()
    try:
        async with aclosing(items):
            async for item in items:
                ahead.put_nowait(item)
    except Exception as error:
        end.error = error
    finally:
        ahead.put_nowait(end)
