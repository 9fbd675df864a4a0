"""Clients that stop in the middle, on real sockets; the server is told what time it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

import pytest
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.engine.scripted import Script, ScriptedEngine
from hybrid.cloud.server.app import create_app
from hybrid.cloud.server.patience import MIN_BYTES_PER_S, is_late
from hybrid.cloud.server.running import RunningServer
from hybrid.cloud.server.settings import ServerSettings
from hybrid.shared_protocol.errors import ConfigError
from hybrid.tests.support.byte_model import byte_model

HEAD = b"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n"
BODY = b'{"prompt": "a"}'


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        """Status and body of one answer."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        status = int(head.split()[1])
        assert head.split(b"\r\n")[0] == f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()
        return status, await self.reader.readexactly(length)


@dataclass
class Place:
    server: RunningServer
    engine: ScriptedEngine
    time: list[float]
    clients: list[Client] = field(default_factory=list)

    async def client(self, sent: bytes) -> Client:
        """One more connection, whose first bytes the server has seen."""
        client = Client(*await asyncio.open_connection(self.server.host, self.server.port))
        self.clients.append(client)
        await client.send(sent)
        await self.seen(client)
        return client

    async def seen(self, client: Client) -> None:
        """Return once what was sent has been read: another client's answer comes after it."""
        reader, writer = await asyncio.open_connection(self.server.host, self.server.port)
        writer.write(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        await reader.read()
        writer.close()

    def pass_time(self, seconds: float) -> None:
        self.time[0] += seconds
        self.server.hang_up(self.time[0])


@asynccontextmanager
async def place(receive_s: float = 30.0) -> AsyncIterator[Place]:
    time, settings = [1_000.0], ServerSettings(receive_s=receive_s, drain_s=0.01)
    engine = ScriptedEngine(Script([b"ok"]), automatic=True, slots=4, max_model_len=8192)
    server = RunningServer(create_app(Frontend(byte_model(8192), engine), settings, clock=lambda: time[0]), settings)
    listening = asyncio.Event()
    serving = asyncio.create_task(server.serve(listening.set))
    await listening.wait()
    found = Place(server, engine, time)
    try:
        yield found
    finally:
        for client in found.clients:
            client.writer.close()
        server.drain()
        await serving


@pytest.mark.parametrize("sent", [HEAD[:40], HEAD, HEAD + BODY[:5]])
async def test_a_request_that_stops_in_the_middle_is_answered_408_and_closed(sent: bytes) -> None:
    async with place() as here:
        client = await here.client(sent)
        here.pass_time(29)
        assert here.server.connections() == 1
        here.pass_time(2)
        status, body = await client.answer()
        assert (status, b"request_timeout" in body) == (408, True)
        assert await client.reader.read() == b""
        assert here.engine.added == []


async def test_a_connection_that_never_says_anything_is_closed_without_a_word() -> None:
    async with place() as here:
        client = await here.client(b"")
        here.pass_time(31)
        assert await client.reader.read() == b""


async def test_a_drip_is_cut_off_though_it_is_never_silent_for_long() -> None:
    async with place() as here:
        client = await here.client(HEAD[:1])
        for index in range(1, 7):
            await client.send(HEAD[index : index + 1])
            await here.seen(client)
            here.pass_time(5)
        assert here.server.connections() == 1
        here.pass_time(1)
        assert (await client.answer())[0] == 408


async def test_a_whole_request_is_answered_however_late_it_is_in_the_day() -> None:
    async with place() as here:
        client = await here.client(HEAD)
        here.pass_time(20)
        await client.send(BODY)
        assert (await client.answer())[0] == 200
        here.pass_time(31)  # between two requests: a minute of its own
        await client.send(HEAD + BODY)
        assert (await client.answer())[0] == 200


async def test_what_is_no_http_is_refused_in_the_envelope() -> None:
    async with place() as here:
        client = await here.client(b"\x16\x03\x01\x02\x00\x01 hello\r\n\r\n")
        status, body = await client.answer()
        assert (status, b'"code":"invalid_request"' in body) == (400, True)


def test_lateness_is_silence_or_a_rate() -> None:
    def late(last: float, received: int, now: float) -> bool:
        return is_late(began=0, last=last, received=received, limit_s=30, now=now)

    assert not late(0, 0, 30)
    assert late(0, 0, 30.5)
    assert late(0, 100 * MIN_BYTES_PER_S, 30.5)  # much has come, but then nothing
    assert not late(120, 100 * MIN_BYTES_PER_S, 130)
    assert late(129, 100 * MIN_BYTES_PER_S, 130.5)


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="receive_s"):
        ServerSettings(receive_s=float("nan"))
