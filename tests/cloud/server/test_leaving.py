"""What happens to work whose client has gone, counted in steps of a scripted engine."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import aiohttp
import pytest
from hybrid.cloud.engine.frontend import LONG_CHARACTERS
from hybrid.cloud.engine.scripted import Script
from hybrid.tests.cloud.server.conftest import USER, Bench, Start
from hybrid.tests.support.byte_tokenizer import ByteTokenizer

ENDLESS = Script([b""] * 3 + [b"x"] * 100_000, finish=None)  # three steps of prefill


async def leave(bench: Bench, call: asyncio.Task[object], others: int = 0) -> None:
    """Hang up, and wait until the server holds at most the `others`."""
    call.cancel()
    with suppress(asyncio.CancelledError, aiohttp.ClientError):
        await call
    await bench.settled(lambda: bench.server.app.service.admission.inside <= others and (others > 0 or bench.idle()))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("steps", [0, 2, 5])
@pytest.mark.parametrize("n", [1, 4])
async def test_an_answer_whose_client_leaves_stops_in_every_phase_with_all_its_choices(
    start: Start, stream: bool, steps: int, n: int
) -> None:
    bench = await start(ENDLESS, automatic=False)
    call = asyncio.create_task(bench.chat(stream=stream, n=n))
    await bench.settled(lambda: len(bench.engine.added) == n)
    await bench.engine.advance(steps)
    await leave(bench, call)
    assert len(bench.engine.aborted) == n
    assert f'finished_reason="abort",model_name="bytes/test"}} {n}.0' in (await bench.get("/metrics")).raw.decode()
    said = bench.engine.tokens
    await bench.engine.advance(3)
    assert bench.engine.tokens == said == max(0, steps - 3) * n


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/tokenize"])
async def test_a_long_text_whose_client_has_gone_is_not_encoded(start: Start, path: str) -> None:
    encoded, go_on = [], threading.Event()

    class Slow(ByteTokenizer):
        def encode(self, text: str, literal_spans: Sequence[tuple[int, int]] = (), *, limit: int | None = None) -> list[int]:
            encoded.append(text)
            assert go_on.wait(60)
            return super().encode(text)

    bench = await start()
    frontend = bench.server.app.service.frontend
    frontend.model = replace(frontend.model, tokenizer=Slow())  # type: ignore[arg-type]
    waiting = frontend._for_long_texts._work_queue
    text = "x" * LONG_CHARACTERS
    body = {"messages": [{"role": "user", "content": text}]} if "chat" in path else {"prompt": text}
    first, second = (asyncio.create_task(bench.post(path, body)) for _ in range(2))
    await bench.settled(lambda: len(encoded) == waiting.qsize() == 1)
    await leave(bench, second, others=1)
    await leave(bench, first)
    metrics = f'{{method="POST",route="{path}",status="499"}} 2.0'
    for _ in range(1_000):
        if metrics in (await bench.get("/metrics")).raw.decode():
            break
    go_on.set()
    assert await frontend.tokenize(text + "y") == list((text + "y").encode())
    assert len(encoded) == 2  # the first, and this one


async def test_a_queued_request_of_a_gone_client_never_runs(start: Start) -> None:
    bench = await start(lambda add: Script([b"x"], finish="stop") if len(add.prompt_ids) < 50 else ENDLESS, automatic=False, slots=1)
    busy = asyncio.create_task(bench.complete(prompt="y" * 50))
    await bench.settled(lambda: len(bench.engine.added) == 1)
    queued = []
    for index in range(5):
        queued.append(asyncio.create_task(bench.complete(prompt=f"q{index}")))
        await bench.settled(lambda: len(bench.engine.added) == len(queued) + 1)
    assert bench.engine.stats().waiting == 5
    for call in queued[:3]:
        call.cancel()
    await bench.settled(lambda: bench.engine.stats().waiting == 2)
    busy.cancel()
    await bench.settled(lambda: bench.engine.stats().running + bench.engine.stats().waiting == 2)
    await bench.engine.advance(2)
    answers = await asyncio.gather(*queued[3:])
    assert [answer.json["choices"][0]["text"] for answer in answers] == ["x", "x"]
    assert bench.engine.tokens == 2
    await bench.settled(bench.idle)


@pytest.mark.parametrize("stream", [False, True])
async def test_all_prompts_of_one_request_stop_together(start: Start, stream: bool) -> None:
    bench = await start(ENDLESS, automatic=False)
    call = asyncio.create_task(bench.complete(prompt=["a", "b", "c"], n=2, stream=stream))
    await bench.settled(lambda: len(bench.engine.added) == 6)
    await bench.engine.advance(5)
    await leave(bench, call)
    assert len(bench.engine.aborted) == 6


async def test_a_mix_of_ends_leaves_nothing_behind(start: Start) -> None:
    ends = [Script([b"a", b"b"]), Script([b"a"], finish="error", error="x"), Script([b"a", b"STOP", b"b"]), ENDLESS]
    bench = await start(lambda add: ends[len(add.prompt_ids) % 4])
    calls = [
        asyncio.create_task(bench.complete(prompt="p" * (1 + i), stop=["STOP"], stream=bool(i % 3), max_tokens=5_000)) for i in range(60)
    ]
    gone = [call for i, call in enumerate(calls) if (1 + i) % 4 == 3]
    await asyncio.gather(*(call for call in calls if call not in gone))
    await bench.settled(lambda: bench.engine.stats().running == len(gone))
    for call in gone:
        call.cancel()
    await bench.settled(bench.idle)


async def test_the_connection_serves_on_after_a_stream(start: Start) -> None:
    bench = await start(b"Hi")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as http:
        for _ in range(3):
            async with http.post(bench.url + "/v1/chat/completions", json={"messages": USER, "stream": True}) as response:
                assert (await response.read()).endswith(b"data: [DONE]\n\n")
