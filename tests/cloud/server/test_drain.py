"""Overload, shutting down, an engine that died."""

import asyncio
from typing import Any

import pytest
from hybrid.cloud.engine.scripted import Script
from hybrid.tests.cloud.server.conftest import USER, Start

ENDLESS = Script([b"x"] * 100_000, finish=None)


async def test_a_draining_server_turns_new_requests_away_and_lets_running_ones_end(start: Start) -> None:
    bench = await start(b"Hi", automatic=False, drain_s=60)
    running = asyncio.create_task(bench.chat(stream=True))
    await bench.settled(lambda: len(bench.engine.added) == 1)
    drained = bench.server.drain()
    late = await bench.chat()
    assert (late.status, late.error["code"]) == (503, "unavailable")
    assert int(late.headers["retry-after"]) >= 1
    ready = await bench.get("/ready")
    assert ready.status == 503
    assert "retry-after" in ready.headers
    assert (await bench.get("/health")).status == 200
    await bench.engine.advance(2)
    assert (await running).streamed_text == "Hi"
    await drained


async def test_what_outlives_the_drain_is_ended_with_an_error_its_client_is_told(start: Start) -> None:
    bench = await start(ENDLESS, automatic=False, drain_s=0.01)
    streamed = asyncio.create_task(bench.chat(stream=True))
    whole = asyncio.create_task(bench.chat())
    await bench.settled(lambda: len(bench.engine.added) == 2)
    await bench.engine.advance(1)
    await bench.server.drain()
    answer = await streamed
    assert answer.events[-1]["error"]["code"] == "unavailable"
    assert (await whole).status == 503
    assert bench.idle()


async def test_more_requests_than_the_limit_are_told_when_to_come_back(start: Start) -> None:
    bench = await start(ENDLESS, automatic=False, max_requests=2)
    calls = [asyncio.create_task(bench.chat()) for _ in range(2)]
    await bench.settled(lambda: len(bench.engine.added) == 2)
    answer = await bench.chat()
    assert (answer.status, answer.error["type"]) == (503, "unavailable_error")
    assert "retry-after" in answer.headers
    assert (await bench.get("/ready")).status == 503
    for call in calls:
        call.cancel()
    await bench.settled(bench.idle)
    assert (await bench.get("/ready")).status == 200


async def test_a_request_whose_prompt_is_being_rendered_holds_a_place(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await start(b"Hi", max_requests=1)
    service, go_on = bench.server.app.service, asyncio.Event()
    render = service.frontend.render

    async def render_later(*args: Any) -> list[int]:
        await go_on.wait()
        return await render(*args)

    monkeypatch.setattr(service.frontend, "render", render_later)
    first = asyncio.create_task(bench.chat())
    await bench.settled(lambda: service.admission.inside == 1)
    assert (await bench.chat()).status == 503
    go_on.set()
    assert (await first).status == 200
    await bench.settled(bench.idle)


async def test_a_dead_engine_makes_the_server_unhealthy_and_every_request_an_error(start: Start) -> None:
    bench = await start(ENDLESS, automatic=False)
    assert (await bench.get("/health")).json == {"status": "ok"}
    call = asyncio.create_task(bench.chat())
    await bench.settled(lambda: len(bench.engine.added) == 1)
    bench.engine.fail("a kernel failed")
    assert (await call).status == 500
    assert (await bench.get("/health")).status == 503
    assert (await bench.get("/ready")).status == 503
    assert (await bench.post("/v1/chat/completions", {"messages": USER, "stream": True})).status == 503
