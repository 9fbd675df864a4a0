"""Server-sent events over one ASGI response: `data: <one line of JSON>`, comments while it is silent, `[DONE]` at the end.

              first event | error        events      silence      fault in the middle   end
    client    <- 200, headers | 4xx      data: {..}  : ping       data: {"error":..}    data: [DONE]

The status waits for the first event, so that a request which is refused at once gets its true status and no stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...shared_protocol.errors import Cancelled, HybridError
from .errors_http import envelope, error_response, internal_error
from .observe import log_fault
from .request_info import RequestInfo, info_of
from .watch import while_connected

PING = b": ping\n\n"  # a comment: clients skip it, an `event: ping` without data breaks them
STALL_S = 60.0  # a client that reads nothing for so long gives up its place
DONE = b"data: [DONE]\n\n"
HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


def event(data: object) -> bytes:
    """One event. JSON has no raw line ends, so one line is enough."""
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


class EventStream(Response):
    """A response that sends `events` as they come; leaving, on either side, closes the generator."""

    def __init__(self, events: AsyncGenerator[object], *, ping_s: float, stall_s: float = STALL_S) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]  # not known ahead
        self._events = events
        self._ping_s = ping_s
        self._stall_s = stall_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        info = info_of(scope)
        writer = _Writer(send, self, self._stall_s)
        try:
            await while_connected(receive, self._pump(writer, info))
        except Cancelled:
            info.outcome = "client_closed"
        except HybridError as error:  # before anything was sent
            await error_response(error)(scope, receive, send)

    async def _pump(self, writer: _Writer, info: RequestInfo) -> None:
        pinger = asyncio.create_task(self._ping(writer))
        try:
            async with aclosing(self._events) as events:
                async for data in events:
                    await writer.write(event(data))
            await writer.write(DONE)
        except Cancelled:
            raise
        except HybridError as error:
            if not writer.started:
                raise
            info.outcome = error.code
            await writer.write(b"data: " + envelope(error) + b"\n\n" + DONE)
        except Exception as fault:
            if not writer.started:
                raise
            log_fault(fault, info.request_id)
            info.outcome = "internal_error"
            await writer.write(b"data: " + envelope(internal_error()) + b"\n\n" + DONE)
        finally:
            pinger.cancel()
            await asyncio.gather(pinger, return_exceptions=True)
        await writer.write(b"", more=False)

    async def _ping(self, writer: _Writer) -> None:
        while True:
            seen = writer.writes
            await asyncio.sleep(self._ping_s)
            if writer.writes == seen:
                await writer.write(PING)


class _Writer:
    """Sends the start before the first bytes; one write at a time, whoever asks."""

    def __init__(self, send: Send, response: Response, stall_s: float) -> None:
        self._send = send
        self._response = response
        self._stall_s = stall_s
        self._turn = asyncio.Lock()
        self.started = False
        self.writes = 0

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Raises Cancelled when the client has read nothing for so long that its buffers are full and stay full."""
        async with self._turn:
            self.writes += 1
            try:
                async with asyncio.timeout(self._stall_s):
                    if not self.started:
                        await self._send({"type": "http.response.start", "status": 200, "headers": self._response.raw_headers})
                        self.started = True
                    await self._send({"type": "http.response.body", "body": data, "more_body": more})
            except TimeoutError:
                raise Cancelled("the client stopped reading") from None
