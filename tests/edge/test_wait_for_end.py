"""Waiting outlasts a cancellation, and tells of it."""

from __future__ import annotations

import asyncio

import pytest
from hybrid.edge.wait_for_end import wait_for_end


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_cancellation_is_raised_only_after_the_end() -> None:
    gate = asyncio.Event()
    task = asyncio.create_task(gate.wait())
    waiting = asyncio.create_task(wait_for_end(task))
    for _ in range(2):  # a second one is no quicker
        await turn()
        waiting.cancel()
        await turn()
        assert not waiting.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert task.result()


async def test_how_it_ends_is_not_asked() -> None:
    async def fails() -> None:
        raise ValueError

    for task in (asyncio.create_task(fails()), asyncio.create_task(asyncio.sleep(0))):
        await wait_for_end(task)
    cancelled = asyncio.create_task(asyncio.sleep(3600))
    cancelled.cancel()
    await wait_for_end(cancelled)
    assert cancelled.cancelled()
