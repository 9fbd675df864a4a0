"""The way to the cloud: an OpenAI-compatible server over HTTP. Nothing is sent that privacy has not cleared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TypeVar

import aiohttp
import msgspec

from ...router.privacy import Shareable, require_shareable
from ...router.request import RouteRequest
from ...shared_protocol.errors import CloudUnreachable, HybridError, StreamInterrupted
from ...shared_protocol.openai import ChatCompletion, ChatCompletionChunk, ModelList
from ...shared_protocol.runtime import LinkState
from .chat_body import chat_body
from .cloud_address import authorization, cloud_address
from .lane import Lane, Lanes, Traffic
from .link import WebSocketLink
from .remote_errors import error_in_stream, error_of
from .sse import EventParser
from .unrepeated import unrepeated

MAX_BODY = 64 * 2**20  # bytes of an answer
MAX_ERROR = 64 * 2**10
T = TypeVar("T")
_LOST = (aiohttp.ClientError, OSError, asyncio.TimeoutError)


class CloudClient:
    """One server. Each call adds what it gives to sockets to the `traffic` of its caller, whether it succeeds or not.

    Every failure is a typed error: CloudUnreachable when no answer began, StreamInterrupted when one broke off, else what the
    server's envelope says. A refused connection is tried once more; nothing else is repeated, and no Retry-After is waited for.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        connect_timeout_s: float = 5.0,
        stall_s: float = 30.0,
        answer_timeout_s: float = 600.0,
        probe_timeout_s: float = 2.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`stall_s`: how long a stream may be silent, before its first byte too; `answer_timeout_s`: how long a whole answer may take;
        `probe_timeout_s`: how long a probe of the link may. Raises ConfigError for an address or a key that is none."""
        self.url = cloud_address(url)
        self.model: str | None = None  # the server's first model, as the last probe saw it
        self._context: int | None = None
        self._lanes = Lanes(authorization(api_key), connect_timeout_s)
        self._stall_s = stall_s
        self._answer_timeout_s = answer_timeout_s
        self._probe_timeout_s = probe_timeout_s
        self._clock = clock

    @property
    def bytes_sent(self) -> int:
        """Bytes given to the cloud's sockets since this client was made, for whatever reason."""
        return self._lanes.total.bytes_sent

    async def probe(self, traffic: Traffic) -> LinkState:
        """Ask the server for its health and its models: nothing of any request is in it. The faster of two round trips counts,
        since the first may have to connect."""
        trips = []
        try:
            async with asyncio.timeout(self._probe_timeout_s), self._lanes.borrow(traffic) as lane:
                for _ in range(2):
                    began = self._clock()
                    async with self._request(lane, "GET", "/health", None) as response:
                        await response.read()
                    trips.append(self._clock() - began)
                await self._learn_model(lane)  # each time: a server that was started again may serve another one
        except (HybridError, *_LOST):
            return LinkState(reachable=False)
        return LinkState(reachable=True, rtt_s=min(trips), cloud_context=self._context)

    async def chat(self, request: Shareable[RouteRequest], traffic: Traffic, model: str | None = None) -> ChatCompletion:
        """The whole answer at once."""
        body = chat_body(request, model, stream=False)
        with unrepeated(request.value):
            async with self._lanes.borrow(traffic) as lane, self._request(lane, "POST", "/v1/chat/completions", body) as response:
                try:
                    async with asyncio.timeout(self._answer_timeout_s):
                        return _decoded(await _read(response, MAX_BODY), ChatCompletion)
                except _LOST as error:
                    raise _interrupted(error, self._answer_timeout_s) from None

    async def stream(
        self, request: Shareable[RouteRequest], traffic: Traffic, model: str | None = None
    ) -> AsyncGenerator[ChatCompletionChunk, None]:
        """The answer as it comes; ends after the server's [DONE]. Closing the iterator closes the connection, which aborts the answer.

        Comments keep a stream from being silent, but only for as long as a whole answer may take.
        """
        body = chat_body(request, model, stream=True)
        with unrepeated(request.value):
            async with aclosing(self._chunks(body, traffic)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _chunks(self, body: bytes, traffic: Traffic) -> AsyncGenerator[ChatCompletionChunk, None]:
        parser, now = EventParser(), asyncio.get_running_loop().time
        asked = "POST", "/v1/chat/completions", body
        async with self._lanes.borrow(traffic) as lane, self._request(lane, *asked, within_s=self._stall_s) as response:
            latest = now() + self._answer_timeout_s
            while True:
                try:
                    async with asyncio.timeout_at(min(now() + self._stall_s, latest)):
                        received = await response.content.readany()
                except _LOST as error:
                    raise _interrupted(error, self._stall_s if now() < latest else self._answer_timeout_s) from None
                if not received:
                    raise StreamInterrupted("the cloud's stream ended before it was done")
                events = parser.feed(received)
                for event in events:
                    if event == b"[DONE]":
                        return
                    yield _chunk(event)
                if events:
                    latest = now() + self._answer_timeout_s

    async def open_link(self, request: Shareable[RouteRequest], traffic: Traffic) -> WebSocketLink:
        """A connection to speculate over, for this request alone. Close it."""
        require_shareable(request)
        lane = self._lanes.take(traffic)

        async def done() -> None:
            await self._lanes.give_back(lane)

        try:
            return await WebSocketLink.open(lane, self.url.replace("http", "ws", 1) + "/v1/speculate", self._stall_s, done)
        except BaseException:
            await done()
            raise

    async def close(self) -> None:
        await self._lanes.close()

    async def _learn_model(self, lane: Lane) -> None:
        """What the server cannot or will not tell stays unknown; if it is our key that is wrong, the request itself will say so."""
        with suppress(HybridError):
            async with self._request(lane, "GET", "/v1/models", None) as response:
                models = _decoded(await _read(response, MAX_BODY), ModelList).data
            if models:
                self.model, self._context = models[0].id, models[0].max_model_len

    @asynccontextmanager
    async def _request(
        self, lane: Lane, method: str, path: str, body: bytes | None, *, within_s: float | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response of status 200, begun `within_s` (else within the time of a whole answer); anything else is raised as the error that
        it stands for."""
        response = await self._connected(lane, method, path, body, self._answer_timeout_s if within_s is None else within_s)
        try:
            if response.status != 200:
                try:
                    async with asyncio.timeout(self._stall_s):
                        told = await _read(response, MAX_ERROR)
                except (*_LOST, StreamInterrupted):
                    told = b""
                if response.status < 400:
                    raise CloudUnreachable(f"{self.url} answered with status {response.status}, where 200 was due")
                raise error_of(response.status, told, response.headers.get("retry-after"))
            yield response
        finally:
            response.close() if not response.content.at_eof() else response.release()

    async def _connected(self, lane: Lane, method: str, path: str, body: bytes | None, within_s: float) -> aiohttp.ClientResponse:
        """Send; return when the status line is there. A refused connection has sent nothing, so it may be tried once more."""
        headers = {"content-type": "application/json"} if body is not None else {}
        for attempt in (1, 2):
            try:
                async with asyncio.timeout(within_s):
                    return await lane.http.request(method, self.url + path, data=body, headers=headers, allow_redirects=False)
            except aiohttp.ClientConnectorError as error:
                if attempt == 2 or not isinstance(error.os_error, ConnectionRefusedError):
                    raise CloudUnreachable(f"no connection to {self.url}: {error.os_error.strerror or 'failed'}") from None
            except _LOST as error:
                raise CloudUnreachable(f"{self.url} did not answer: {type(error).__name__}") from None
        raise AssertionError("a second attempt returns or raises")


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while received := await response.content.readany():
        parts.append(received)
        size += len(received)
        if size > limit:
            raise StreamInterrupted(f"the cloud's answer is longer than {limit} bytes")
    return b"".join(parts)


def _chunk(event: bytes) -> ChatCompletionChunk:
    error = error_in_stream(event)
    if error is not None:
        raise error
    return _decoded(event, ChatCompletionChunk)


def _decoded(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise StreamInterrupted(f"the cloud sent what is no {kind.__name__}: {fault}") from None


def _interrupted(error: BaseException, limit_s: float) -> StreamInterrupted:
    if isinstance(error, asyncio.TimeoutError):
        return StreamInterrupted(f"the cloud was silent for {limit_s:g} s")
    return StreamInterrupted(f"the cloud's answer was cut off: {type(error).__name__}")
