"""What becomes of an answer when its client reads nothing or breaks off, or the server ends without waiting for it."""

import asyncio
import logging

import aiohttp
import msgspec
import pytest
from hybrid.cloud.engine.messages import EngineStats
from hybrid.cloud.server.logs import is_no_denial
from hybrid.cloud.server.metrics import Metrics
from hybrid.cloud.server.observe import Observe
from hybrid.cloud.server.request_info import begin
from hybrid.cloud.server.sse import EventStream
from hybrid.tests.cloud.server.conftest import Start
from starlette.types import Message, Receive, Scope, Send


async def test_a_client_that_stops_reading_gives_up_its_place() -> None:
    closed = []

    async def events():
        try:
            while True:
                yield {"text": "x"}
        finally:
            closed.append(True)

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) > 3:  # the socket's buffer is full
            await asyncio.Event().wait()

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("never")

    scope: Scope = {"type": "http"}
    info = begin(scope, None)
    await EventStream(events(), ping_s=60, stall_s=0.01)(scope, receive, send)
    assert closed == [True]
    assert info.outcome == "client_closed"


async def test_a_client_that_breaks_off_its_body_is_no_fault_of_ours(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hybrid.server")
    bench = await start()
    _, writer = await asyncio.open_connection(bench.server.host, bench.server.port)
    writer.write(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    await writer.drain()
    await asyncio.sleep(0.01)
    writer.close()
    await bench.settled(lambda: "/tokenize" in caplog.text)
    assert "fault" not in caplog.text
    assert "499" in caplog.text


async def test_whoever_waits_when_the_server_is_ended_by_force_gets_a_503() -> None:
    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("never")

    metrics = Metrics(lambda: EngineStats(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "m")
    scope: Scope = {"type": "http", "method": "POST", "path": "/tokenize", "headers": []}
    answering = asyncio.ensure_future(Observe(endless, metrics=metrics, clock=lambda: 0.0)(scope, receive, send))
    await asyncio.sleep(0)
    answering.cancel()
    await answering
    start, body = sent
    assert start["status"] == 503
    assert msgspec.json.decode(body["body"])["error"]["code"] == "unavailable"


async def test_a_denied_websocket_is_no_error_of_ours(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    bench = await start()
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await bench.http.ws_connect(bench.url + "/v1/speculate", headers={"host": "evil.example"})
    await bench.settled(lambda: any(not is_no_denial(record) for record in caplog.records))  # uvicorn's own line, word for word
    assert [record for record in caplog.records if record.levelno >= logging.WARNING and is_no_denial(record)] == []
