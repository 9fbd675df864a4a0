"""A real server on a loopback socket over a scripted engine, and a real HTTP client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.engine.scripted import Script, ScriptedEngine
from hybrid.cloud.server.running import RunningServer, serve_in_background
from hybrid.cloud.server.settings import ServerSettings
from hybrid.tests.support.byte_model import byte_model

USER = [{"role": "user", "content": "Hello"}]


@dataclass
class Answer:
    status: int
    headers: Any
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def error(self) -> dict[str, Any]:
        assert set(self.json) == {"error"}
        assert set(self.json["error"]) == {"message", "type", "param", "code"}
        found: dict[str, Any] = self.json["error"]
        return found

    @property
    def lines(self) -> list[str]:
        """The `data:` lines of a stream, as they came."""
        blocks = self.raw.decode().split("\n\n")
        assert blocks[-1] == "", "the last event ends with a blank line"
        return [block.removeprefix("data: ") for block in blocks[:-1] if not block.startswith(":")]

    @property
    def events(self) -> list[Any]:
        """The events of a stream; it must have ended with [DONE]."""
        assert self.lines[-1] == "[DONE]"
        return [json.loads(line) for line in self.lines[:-1]]

    @property
    def streamed_text(self) -> str:
        choices = [choice for event in self.events for choice in event["choices"]]
        return "".join(choice["delta"].get("content") or "" if "delta" in choice else choice["text"] for choice in choices)


@dataclass
class Bench:
    """One server under test."""

    engine: ScriptedEngine
    server: RunningServer
    http: aiohttp.ClientSession
    url: str
    headers: dict[str, str] = field(default_factory=dict)

    async def call(self, method: str, path: str, **options: Any) -> Answer:
        async with self.http.request(method, self.url + path, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.call("GET", path, **options)

    async def post(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.call("POST", path, json=body, **options)

    async def chat(self, **fields: Any) -> Answer:
        return await self.post("/v1/chat/completions", {"messages": USER} | fields)

    async def complete(self, **fields: Any) -> Answer:
        return await self.post("/v1/completions", {"prompt": "a"} | fields)

    async def settled(self, holds: Callable[[], bool]) -> None:
        """Let the loop turn until `holds()`."""
        for _ in range(10_000):
            if holds():
                return
            await asyncio.sleep(0.001)
        pytest.fail("it never came to be")

    def idle(self) -> bool:
        stats = self.engine.stats()
        return stats.running == stats.waiting == stats.used == 0 and self.server.app.service.admission.inside == 0


Start = Callable[..., Awaitable[Bench]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`await start(script, automatic=True, slots=..., settings...)` -> a Bench; all is closed after the test."""
    async with AsyncExitStack() as stack:

        async def begin(
            script: Script | Callable[..., Script] | bytes = b"Hi",
            *,
            automatic: bool = True,
            slots: int = 64,
            max_model_len: int = 8192,
            max_queue: int | None = None,
            **settings: Any,
        ) -> Bench:
            told = Script([bytes([byte]) for byte in script]) if isinstance(script, bytes) else script
            engine = ScriptedEngine(told, automatic=automatic, slots=slots, max_model_len=max_model_len, max_queue=max_queue)
            frontend = Frontend(byte_model(max_model_len), engine)
            server = await stack.enter_async_context(serve_in_background(frontend, ServerSettings(**({"drain_s": 0.01} | settings))))
            http = await stack.enter_async_context(aiohttp.ClientSession())
            return Bench(engine, server, http, server.url)

        yield begin
