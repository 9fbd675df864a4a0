"""Work for a client ends when the client goes. The server frameworks watch streams only; this watches whatever is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from starlette.types import Receive

from ...shared_protocol.errors import Cancelled

T = TypeVar("T")


async def while_connected(receive: Receive, work: Coroutine[object, object, T]) -> T:
    """The result of `work`; when the client disconnects first, `work` is cancelled, awaited, and Cancelled is raised.

    `receive` must have delivered the whole body: all that can still come is the disconnect.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Cancelled("the client closed the connection")
        return task.result()
    finally:
        for pending in (task, gone):
            pending.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
