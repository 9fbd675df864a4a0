"""What is made is made once, whether or not it is read."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator

import pytest
from hybrid.edge.client.pump import Pump


class Maker:
    """Yields 0, 1, 2 ... up to `count`, one at each turn of the loop; then raises `error`, if there is one."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.count = count
        self.error = error
        self.made = 0
        self.left = False

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(self.count):
                await asyncio.sleep(0)
                self.made += 1
                yield number
            if self.error is not None:
                raise self.error
        finally:
            self.left = True


async def test_all_is_made_though_nobody_reads_and_is_read_in_order_after() -> None:
    maker = Maker(5)
    pump = Pump(maker.items())
    await pump.finish()
    assert (maker.made, maker.left) == (5, True)
    assert [await pump.next() for _ in range(7)] == [0, 1, 2, 3, 4, None, None]


async def test_an_error_comes_after_what_was_made_before_it_and_once() -> None:
    pump = Pump(Maker(1, ValueError("broken")).items())
    assert await pump.next() == 0
    with pytest.raises(ValueError, match="broken"):
        await pump.next()
    assert await pump.next() is None


async def test_closing_stops_it_where_it_is_and_lets_the_reader_go() -> None:
    maker = Maker(1000)
    pump = Pump(maker.items())
    reader = asyncio.create_task(pump.next())
    assert await reader == 0
    never = asyncio.Event()

    async def waits() -> AsyncGenerator[int, None]:
        await never.wait()
        yield 0

    silent = Pump(waits())
    waiting = asyncio.create_task(silent.next())
    await asyncio.sleep(0)
    await asyncio.gather(pump.close(), silent.close())
    assert await waiting is None
    assert await pump.next() is None
    assert maker.left
    assert maker.made < 10
    await pump.close()


async def test_one_that_is_forgotten_stops() -> None:
    maker = Maker(1000)
    pump = Pump(maker.items())
    await pump.next()
    del pump
    gc.collect()
    for _ in range(10):
        await asyncio.sleep(0)
    assert maker.left
    assert maker.made < 20
