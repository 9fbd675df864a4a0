"""Waiting for what must end before anything else may begin."""

from __future__ import annotations

import asyncio
from typing import Any


async def wait_for_end(task: asyncio.Future[Any]) -> None:
    """Return when `task` is done, however it ended. A cancellation meanwhile does not cut the waiting short; it is raised after it."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if not task.cancelled():
        task.exception()  # seen
    if cancelled is not None:
        raise cancelled
