"""`/v1/speculate` on a WebSocket: binary messages, one frame each.

The handshake (Host on loopback, Origin, key) is checked before this route is reached. The server must be started without
permessage-deflate: it undoes the padding of frames and invites bombs; and with a limit of MAX_MESSAGE_BYTES on messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from starlette.routing import WebSocketRoute
from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketDisconnect

from ....shared_protocol.errors import HybridError, ProtocolError
from ....shared_protocol.frames import WINDOW, CloudFrame, DeviceFrame, decode, encode
from .handler import SpeculateHandler, SpeculateService, error_frame

PATH = "/v1/speculate"
NORMAL, PROTOCOL_ERROR, UNSUPPORTED_DATA, INTERNAL_ERROR = 1000, 1002, 1003, 1011  # RFC 6455, 7.4.1
LOOK_S = 1.0  # a lease is over at most this late

log = logging.getLogger(__name__)


def speculate_route(service: SpeculateService, key_id: Callable[[Scope], str]) -> WebSocketRoute:
    """The route to mount. `key_id` names the key that the handshake was let in with."""

    async def endpoint(websocket: WebSocket) -> None:
        await websocket.accept()
        await _Connection(websocket, service.connect(key_id(websocket.scope))).run()

    return WebSocketRoute(PATH, endpoint)


class _Connection:
    def __init__(self, websocket: WebSocket, handler: SpeculateHandler) -> None:
        self._websocket = websocket
        self._handler = handler
        self._sending = asyncio.Lock()
        self._waiting: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until the device is gone, its lease is over, or a message is no frame. What it had in the engine is aborted."""
        lease = asyncio.create_task(self._watch_lease())
        try:
            await self._read()
        except WebSocketDisconnect:
            pass
        finally:
            self._handler.close()
            for task in (lease, *self._waiting):
                task.cancel()
            await asyncio.gather(lease, *self._waiting, return_exceptions=True)

    async def _read(self) -> None:
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            data = message.get("bytes")
            if data is None:
                await self._close(UNSUPPORTED_DATA)
                return
            try:
                frame = decode(data, "to_cloud")
            except ProtocolError as error:
                await self._send([error_frame(error)])
                await self._close(PROTOCOL_ERROR)
                return
            while len(self._waiting) >= WINDOW:  # a device that does not wait for answers is not read either
                await asyncio.wait(self._waiting, return_when=asyncio.FIRST_COMPLETED)
            task = asyncio.create_task(self._answer(frame))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _answer(self, frame: DeviceFrame) -> None:
        try:
            answers = await self._handler.handle(frame)
        except Exception:
            log.exception("a %s frame failed", type(frame).__name__)
            await self._send([error_frame(HybridError("the server failed on this frame"))])
            await self._close(INTERNAL_ERROR)
            return
        await self._send(answers)
        if self._handler.closed:
            await self._close(NORMAL)

    async def _watch_lease(self) -> None:
        while not self._handler.closed:
            await asyncio.sleep(min(max(self._handler.lease_left(), 0.001), LOOK_S))
            expired = self._handler.expire()
            if expired:
                await self._send(expired)
                await self._close(NORMAL)

    async def _send(self, answers: list[CloudFrame]) -> None:
        async with self._sending:
            for frame in answers:
                with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the device is gone; reading will say so
                    await self._websocket.send_bytes(encode(frame))

    async def _close(self, code: int) -> None:
        with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # closed by the device meanwhile
            await self._websocket.close(code)
