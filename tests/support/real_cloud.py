"""A real engine over a model, and its `/v1/speculate` on a socket that can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.engine.open_engine import open_engine
from hybrid.cloud.engine.thread_client import ThreadEngineClient
from hybrid.cloud.server.speculate.handler import SpeculateService
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_server import completion


@asynccontextmanager
async def real_frontend(model: Model, context: int = 512) -> AsyncIterator[Frontend]:
    client = ThreadEngineClient(open_engine(model, max_model_len=context))
    try:
        yield Frontend(model, client)
    finally:
        await client.close()


@dataclass
class CutServer:
    """Answers health, models and speculation, and every chat with three words; cuts the socket when round `dies_at_round` arrives.

    `tamper` is what becomes of its own frames.
    """

    service: SpeculateService
    dies_at_round: int
    tamper: Callable[[frames.CloudFrame], frames.CloudFrame] = lambda frame: frame
    url: str = ""
    received: list[frames.DeviceFrame] = field(default_factory=list)

    async def speculate(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        handler = self.service.connect("key")
        async for message in socket:
            frame = frames.decode(message.data, "to_cloud")
            self.received.append(frame)
            if isinstance(frame, frames.Draft) and frame.round == self.dies_at_round:
                assert request.transport is not None
                request.transport.abort()
                break
            for answer in await handler.handle(frame):
                await socket.send_bytes(frames.encode(self.tamper(answer)))
        handler.close()
        return socket

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self.service.model_id, "created": 1, "owned_by": "x"}]})

    async def chat(self, request: web.Request) -> web.Response:
        return web.json_response(completion("from afar alone"))


@asynccontextmanager
async def cut_server(frontend: Frontend, dies_at_round: int = 0) -> AsyncIterator[CutServer]:
    server = CutServer(SpeculateService(frontend, secret=b"s" * 16), dies_at_round)
    app = web.Application()
    app.router.add_get("/v1/speculate", server.speculate)
    app.router.add_get("/v1/models", server.models)
    app.router.add_get("/health", server.models)
    app.router.add_post("/v1/chat/completions", server.chat)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
