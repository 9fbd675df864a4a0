"""The server over a real engine with a tiny random model: nothing is left behind, nothing depends on company."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.engine.open_engine import open_engine
from hybrid.cloud.engine.thread_client import ThreadEngineClient
from hybrid.cloud.server.running import serve_in_background
from hybrid.shared_protocol.model import Model


class Served:
    def __init__(self, client: ThreadEngineClient, http: aiohttp.ClientSession, url: str) -> None:
        self.client = client
        self._http = http
        self._url = url

    async def complete(self, **fields: Any) -> Any:
        async with self._http.post(self._url + "/v1/completions", json=fields) as answer:
            return await answer.json()

    async def idle(self) -> bool:
        """IDLE: nothing runs, and every block is free or cached."""
        for _ in range(5_000):
            stats = self.client.stats()
            if stats.running == stats.waiting == stats.used == 0:
                return stats.healthy and stats.free + stats.cached == stats.total
            await asyncio.sleep(0.001)
        return False


@pytest.fixture
async def served(tiny_llama: Model) -> AsyncIterator[Served]:
    client = ThreadEngineClient(open_engine(tiny_llama, threads=1, kv_blocks=64, max_num_seqs=8))
    try:
        async with serve_in_background(Frontend(tiny_llama, client)) as server, aiohttp.ClientSession() as http:
            yield Served(client, http, server.url)
    finally:
        await client.close()


async def test_a_mix_of_ends_and_departures_leaves_the_engine_idle(served: Served) -> None:
    dice = random.Random(5)

    async def one(number: int) -> None:
        prompt = [dice.randrange(300) for _ in range(dice.randrange(1, 40))]
        ask = served.complete(prompt=prompt, max_tokens=dice.choice([1, 5, 40]), n=dice.choice([1, 3]), stop=["e"], seed=number)
        if number % 3:
            await ask
            return
        call = asyncio.create_task(ask)
        await asyncio.sleep(dice.random() * 0.01)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call

    await asyncio.gather(*(one(number) for number in range(90)))
    assert await served.idle()
    assert (await served.complete(prompt=[1], max_tokens=1))["usage"]["completion_tokens"] == 1


async def test_an_answer_is_the_same_cold_warm_and_in_company(served: Served) -> None:
    asked = {"prompt": list(range(2, 60)), "max_tokens": 12, "seed": 1, "temperature": 0.9, "logprobs": 2}
    cold = await served.complete(**asked)
    others = [served.complete(prompt=[7, number], max_tokens=20, seed=number) for number in range(12)]
    warm, *_ = await asyncio.gather(served.complete(**asked), *others)
    assert warm["choices"] == cold["choices"]
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert warm["usage"]["prompt_tokens_details"]["cached_tokens"] == 48, "three whole blocks of 16"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the process's memory as Linux tells it")
async def test_memory_does_not_grow_with_unique_requests(served: Served) -> None:
    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    async def serve(first: int, count: int) -> None:
        async def one(number: int) -> None:
            prompt = [number % 300, number // 300, *range(20)]
            assert (await served.complete(prompt=prompt, max_tokens=2, logprobs=5))["usage"]["completion_tokens"] <= 2

        for number in range(first, first + count, 8):
            await asyncio.gather(*(one(number + i) for i in range(8)))

    logging.disable(logging.INFO)  # pytest keeps every record
    try:
        await serve(0, 480)
        before = resident()
        await serve(1_000, 960)
        grown = resident() - before
    finally:
        logging.disable(logging.NOTSET)
    assert grown < 960 * 2048, f"{grown / 960:.0f} bytes a request"
