"""What a stream does when its client reads nothing, or breaks off while it sends its request."""

import asyncio
import logging

import pytest
from hybrid.cloud.server.request_info import begin
from hybrid.cloud.server.sse import EventStream
from starlette.types import Message, Scope

from .conftest import Start


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
