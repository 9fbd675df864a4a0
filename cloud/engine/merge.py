"""Several streams read as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
_AHEAD = 64  # items that a stream may be ahead of the reader


@dataclass(frozen=True, slots=True)
class _Ended:
    """What a stream leaves in the queue when it ends."""

    error: Exception | None = None


async def merge(streams: Sequence[AsyncGenerator[T]]) -> AsyncGenerator[T]:
    """Yield what any of the streams yields, each in its own order. The first failure ends all; so does leaving early."""
    if len(streams) == 1:
        async with aclosing(streams[0]) as only:
            async for single in only:
                yield single
        return
    items: asyncio.Queue[T | _Ended] = asyncio.Queue(_AHEAD * len(streams))

    async def pump(stream: AsyncGenerator[T]) -> None:
        try:
            async with aclosing(stream):
                async for item in stream:
                    await items.put(item)
            await items.put(_Ended())
        except Exception as error:
            await items.put(_Ended(error))

    pumps = [asyncio.create_task(pump(stream)) for stream in streams]
    try:
        left = len(pumps)
        while left:
            item = await items.get()
            if not isinstance(item, _Ended):
                yield item
            elif item.error is not None:
                raise item.error
            else:
                left -= 1
    finally:
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
