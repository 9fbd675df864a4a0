"""How frames of speculation travel: over a WebSocket, or by a call inside the process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

import aiohttp

from ...shared_protocol.errors import CloudUnreachable, HybridError, NotFound, ProtocolError, StreamInterrupted
from ...shared_protocol.frames import CloudFrame, DeviceFrame, decode, encode
from ...shared_protocol.wire import MAX_MESSAGE_BYTES
from .lane import Lane
from .remote_errors import error_of

CLOSE_S = 1.0  # how long a server may take to say goodbye


class Link(Protocol):
    """One connection for one answer. After an error it is of no more use."""

    async def send(self, frame: DeviceFrame) -> None:
        """Raises StreamInterrupted when the connection is gone."""
        ...

    async def receive(self) -> CloudFrame:
        """The next frame. Raises StreamInterrupted when the connection is gone or silent, ProtocolError for what is no frame."""
        ...

    async def close(self) -> None:
        """May be called again, and after an error."""
        ...


class WebSocketLink(Link):
    """Binary messages, uncompressed: compression would undo the padding, and invite bombs."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, stall_s: float, done: Callable[[], Awaitable[None]]) -> None:
        self._socket = socket
        self._stall_s = stall_s
        self._done: Callable[[], Awaitable[None]] | None = done

    @staticmethod
    async def open(lane: Lane, url: str, stall_s: float, done: Callable[[], Awaitable[None]]) -> WebSocketLink:
        """Connect over `lane`; `done` is awaited once, when the link closes. Raises CloudUnreachable, or what the server refused with."""
        try:
            async with asyncio.timeout(stall_s):
                socket = await lane.http.ws_connect(
                    url, compress=0, max_msg_size=MAX_MESSAGE_BYTES + 1, timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S)
                )
        except aiohttp.WSServerHandshakeError as error:
            raise _refused(url, error) from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise CloudUnreachable(f"no connection to {url}: {type(error).__name__}") from None
        return WebSocketLink(socket, stall_s, done)

    async def send(self, frame: DeviceFrame) -> None:
        try:
            async with asyncio.timeout(self._stall_s):
                await self._socket.send_bytes(encode(frame))
        except TimeoutError:
            raise StreamInterrupted(f"the cloud has taken nothing for {self._stall_s:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise StreamInterrupted(f"the link to the cloud is gone: {type(error).__name__}") from None

    async def receive(self) -> CloudFrame:
        try:
            async with asyncio.timeout(self._stall_s):
                message = await self._socket.receive()
        except TimeoutError:
            raise StreamInterrupted(f"the cloud was silent for {self._stall_s:g} s") from None
        if message.type is aiohttp.WSMsgType.BINARY:
            return decode(message.data, "to_device")
        if message.type is aiohttp.WSMsgType.TEXT:
            raise ProtocolError("the cloud sent text where frames are binary")
        raise StreamInterrupted("the link to the cloud is gone")

    async def close(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            try:
                await self._socket.close()
            finally:
                await done()


def _refused(url: str, error: aiohttp.WSServerHandshakeError) -> HybridError:
    """A server without this endpoint may say so with any status, often 403; those of keys, quotas and failures mean themselves."""
    if error.status in (401, 429) or (error.status >= 500 and error.status != 501):
        return error_of(error.status, b"", error.headers.get("retry-after") if error.headers else None)
    return NotFound(f"{url} does not take part in speculation (status {error.status})")


class LoopbackLink(Link):
    """Frames go to `handle` and its answers come back, all as the bytes that would travel. `bytes_sent` counts the messages."""

    def __init__(self, handle: Callable[[DeviceFrame], Awaitable[Iterable[CloudFrame]]]) -> None:
        self._handle = handle
        self._answers: deque[bytes] = deque()
        self._closed = False
        self.bytes_sent = 0

    async def send(self, frame: DeviceFrame) -> None:
        if self._closed:
            raise StreamInterrupted("the link is closed")
        message = encode(frame)
        self.bytes_sent += len(message)
        self._answers.extend(encode(answer) for answer in await self._handle(decode(message, "to_cloud")))

    async def receive(self) -> CloudFrame:
        if self._closed or not self._answers:
            raise StreamInterrupted("the cloud has nothing to say")
        return decode(self._answers.popleft(), "to_device")

    async def close(self) -> None:
        self._closed = True
