"""Counted bytes are the bytes that arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from hybrid.edge.transport.lane import Lanes, Traffic
from hybrid.tests.support.scripted_server import FOREVER, says, scripted_server, sse_head

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class CountingServer:
    """Answers every request with two bytes; counts what it receives and the connections it accepts."""

    def __init__(self) -> None:
        self.received = b""
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while data := await reader.read(65536):
            self.received += data
            if self.received.endswith(b"END"):
                writer.write(OK)
        writer.close()


@asynccontextmanager
async def counting_server() -> AsyncIterator[CountingServer]:
    counting = CountingServer()
    server = await asyncio.start_server(counting.serve, "127.0.0.1", 0)
    async with server:
        counting.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield counting


async def test_bytes_sent_are_the_bytes_that_the_server_receives() -> None:
    async with counting_server() as server:
        lanes = Lanes({"authorization": "Bearer k"}, 5)
        first, second = Traffic(), Traffic()
        async with lanes.borrow(first) as lane, lane.http.post(server.url, data=b"x" * 300_000 + b"END") as response:
            assert await response.read() == b"ok"
        after_one = len(server.received)
        async with lanes.borrow(second) as lane, lane.http.post(server.url, data=b"END") as response:
            await response.read()
        await lanes.close()
        assert server.connections == 1  # the second request reused it
        assert first.bytes_sent == after_one
        assert b"Bearer k" in server.received
        assert second.bytes_sent == len(server.received) - after_one


async def test_two_requests_at_once_are_counted_apart() -> None:
    async with counting_server() as server:
        lanes = Lanes({}, 5)
        first, second = Traffic(), Traffic()
        async with lanes.borrow(first) as a, lanes.borrow(second) as b:
            assert a is not b
            async with b.http.post(server.url, data=b"END") as response:
                await response.read()
        await lanes.close()
        assert first.bytes_sent == 0
        assert second.bytes_sent == len(server.received)


async def test_a_refused_connection_sends_nothing() -> None:
    lanes, traffic = Lanes({}, 5), Traffic()
    async with lanes.borrow(traffic) as lane:
        with suppress(aiohttp.ClientConnectorError):
            await lane.http.get("http://127.0.0.1:9")
    await lanes.close()
    assert traffic.bytes_sent == 0


async def test_a_websocket_is_not_redirected_to_another_server() -> None:
    asked: list[bytes] = []

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
        if len(asked) == 1:
            writer.write(b"HTTP/1.1 307 X\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(redirect, "127.0.0.1", 0) as server:
        lanes = Lanes({}, 60)
        async with lanes.borrow(Traffic()) as lane:
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await lane.http.ws_connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/here")
        await lanes.close()
    assert asked == [b"/here"]


async def test_closing_tells_whoever_reads_from_a_silent_server() -> None:
    """Else it would sit there until the server says something, or for ever."""
    async with scripted_server(says(sse_head(), FOREVER)) as server:
        lanes = Lanes({}, connect_timeout_s=5)

        async def read() -> bytes:
            async with lanes.borrow(Traffic()) as lane, lane.http.get(server.url) as response:
                begun.set()
                return await response.content.readany()

        begun = asyncio.Event()
        reading = asyncio.create_task(read())
        await begun.wait()
        await lanes.close()
        async with asyncio.timeout(40):
            with pytest.raises(aiohttp.ClientError):
                await reading
            await server.left.wait()
