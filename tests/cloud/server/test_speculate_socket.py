"""The same frames over a real socket: bytes in, bytes out, and an end that leaves nothing running."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import aiohttp
import pytest
import uvicorn
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.server.speculate.handler import SpeculateService
from hybrid.cloud.server.speculate.limits import SpeculateLimits
from hybrid.cloud.server.speculate.websocket import PATH, speculate_route
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.frames import decode, encode, pack_ids
from hybrid.shared_protocol.model_card import ModelCard
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.verify import prefix_hash
from hybrid.tests.support.byte_tokenizer import EOS, ByteTokenizer
from hybrid.tests.support.remote_engine import RemoteEngine
from starlette.applications import Starlette

CARD = ModelCard("toy", "toy", "F32", 0, 64, 258, "bytes", "toy-hash", 0, "Apache-2.0", vocabulary="bytes")
HELLO = frames.Hello((1,), frames.Limits())
OPEN = frames.Open("toy", "bytes", SamplingParams(), 7, 0, 2, pack_ids(b"Q:"))


class Served:
    def __init__(self, **limits: float) -> None:
        self.engine = RemoteEngine(lambda sequence, _: [*b"Q:Hi", EOS][len(sequence)], eos_ids=(EOS,))
        frontend = Frontend(SimpleNamespace(tokenizer=ByteTokenizer(), card=CARD), self.engine)
        self.service = SpeculateService(frontend, secret=b"s" * 16, limits=SpeculateLimits(**limits))
        self.keys: list[str] = []

    def key_id(self, scope: dict[str, object]) -> str:
        self.keys.append(str(scope["path"]))
        return "key"

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        with socket.create_server(("127.0.0.1", 0)) as bound:
            app = Starlette(routes=[speculate_route(self.service, self.key_id)])
            server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, ws_per_message_deflate=False))
            serving = asyncio.create_task(server.serve(sockets=[bound]))
            try:
                yield f"http://127.0.0.1:{bound.getsockname()[1]}{PATH}"
            finally:
                server.should_exit = True
                await serving

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        async with self.listening() as url, aiohttp.ClientSession() as client, client.ws_connect(url) as link:
            yield link

    async def until_idle(self) -> None:
        while self.engine.alive:
            await asyncio.sleep(0.001)


async def receive(link: aiohttp.ClientWebSocketResponse) -> frames.CloudFrame:
    message = await link.receive_bytes(timeout=20)
    assert len(message) in (64, 256)
    return decode(message, "to_device")


async def opened(link: aiohttp.ClientWebSocketResponse) -> frames.Opened:
    for frame in (HELLO, OPEN):
        await link.send_bytes(encode(frame))
    assert await receive(link) == frames.CloudHello(1, frames.Limits())
    answer = await receive(link)
    assert isinstance(answer, frames.Opened)
    return answer


def window(session: bytes, ids: bytes) -> frames.Draft:
    return frames.Draft(session, 1, 2, prefix_hash(b"Q:"), pack_ids(ids))


async def test_an_answer_is_drafted_over_a_socket() -> None:
    served = Served()
    async with served.connected() as link:
        session = (await opened(link)).session
        await link.send_bytes(encode(window(session, b"Hi")))
        verdict = await receive(link)
        assert (verdict.n_accepted, verdict.token, verdict.finish, verdict.visible_len) == (2, EOS, "stop", 2)
        assert served.keys == [PATH] and link.compress == 0


async def test_a_ping_overtakes_a_draft_that_the_engine_works_on() -> None:
    served = Served()
    async with served.connected() as link:
        session = (await opened(link)).session
        served.engine.hold()
        for frame in (window(session, b"Hi"), frames.Ping(4)):
            await link.send_bytes(encode(frame))
        assert await receive(link) == frames.Pong(4)
        served.engine.release()
        assert (await receive(link)).n_accepted == 2


async def test_a_device_that_hangs_up_is_aborted_whatever_it_waits_for() -> None:
    served = Served()
    async with served.listening() as url, aiohttp.ClientSession() as client:
        for hold in (False, True):
            async with client.ws_connect(url) as link:
                session = (await opened(link)).session
                if hold:
                    served.engine.hold()
                    await link.send_bytes(encode(window(session, b"Hi")))
            await served.until_idle()
    assert len(served.engine.aborted) == 2


@pytest.mark.parametrize("message", [b"", b"\0" * 64, b"x" * 64, encode(frames.Ping())[:-1], encode(frames.Pong()) + b"\0" * 192])
async def test_a_message_that_is_no_frame_is_answered_and_ends_the_connection(message: bytes) -> None:
    served = Served()
    async with served.connected() as link:
        await opened(link)
        await link.send_bytes(message)
        error = await receive(link)
        assert isinstance(error, frames.Error) and error.code in ("protocol_error", "frame_too_large")
        assert (await link.receive()).type is aiohttp.WSMsgType.CLOSE and link.close_code == 1002
        await served.until_idle()


async def test_text_messages_end_the_connection() -> None:
    async with Served().connected() as link:
        await link.send_str("{}")
        assert (await link.receive()).type is aiohttp.WSMsgType.CLOSE and link.close_code == 1003


async def test_a_device_of_another_version_is_told_and_let_go() -> None:
    async with Served().connected() as link:
        await link.send_bytes(encode(frames.Hello((9,), frames.Limits())))
        assert (await receive(link)).code == "unsupported_version"
        assert (await link.receive()).type is aiohttp.WSMsgType.CLOSE and link.close_code == 1000


async def test_an_idle_connection_is_told_and_closed() -> None:
    served = Served(lease_s=0.05)
    async with served.connected() as link:
        assert (await receive(link)).code == "lease_expired"
        assert (await link.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_a_fault_of_ours_is_answered_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    served = Served()
    async with served.connected() as link:
        session = (await opened(link)).session
        served.engine.draft = lambda message: 1 / 0
        await link.send_bytes(encode(window(session, b"Hi")))
        error = await receive(link)
        assert (error.code, error.message) == ("internal_error", "the server failed on this frame")
        assert (await link.receive()).type is aiohttp.WSMsgType.CLOSE and link.close_code == 1011
    assert "ZeroDivisionError" in caplog.text


async def test_a_device_that_sends_and_never_reads_is_not_read_for_ever() -> None:
    served = Served()
    async with served.connected() as link:
        session = (await opened(link)).session
        served.engine.hold()
        for _ in range(40):
            await link.send_bytes(encode(window(session, b"Hi")))
        await asyncio.sleep(0.05)
        assert len(served.engine.drafts) == 1  # one at a time reaches the engine, few wait
        served.engine.release()
        assert (await receive(link)).n_accepted == 2
