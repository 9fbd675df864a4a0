"""Connections to the cloud that know, to the byte, what was given to their sockets.

A lane is one HTTP connection at a time, kept alive between requests; a request borrows a lane for itself alone, so what the lane's
sockets send meanwhile is what the request sends: request lines, headers, bodies, WebSocket frames, and the TLS records around them.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import aiohttp

from ...shared_protocol.errors import ClientClosed

KEEP_ALIVE_S = 4.0  # shorter than servers keep an idle connection, so that none is used while the server closes it


@dataclass(slots=True)
class Traffic:
    """Bytes that one request gave to sockets: its attempts, its probe of the link and its retries together."""

    bytes_sent: int = 0


class _CountingSocket(socket.socket):
    """A socket that adds what the kernel took to the account of whoever has its lane."""

    lane: Lane

    def send(self, *args: object) -> int:
        return self._count(super().send(*args))  # type: ignore[arg-type]

    def sendmsg(self, *args: object) -> int:
        return self._count(super().sendmsg(*args))  # type: ignore[arg-type]

    def _count(self, sent: int) -> int:
        self.lane.traffic.bytes_sent += sent
        self.lane.total.bytes_sent += sent
        return sent


async def _stay(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """aiohttp would follow the redirect of a WebSocket's handshake, and what is said then would go wherever it leads."""
    response = await handler(request)
    if 300 <= response.status < 400 and "upgrade" in request.headers:
        response.close()
        raise aiohttp.WSServerHandshakeError(
            response.request_info, response.history, message="redirected", status=response.status, headers=response.headers
        )
    return response


class Lane:
    """An `aiohttp.ClientSession` over counting sockets, one connection at a time. Make it inside a running event loop."""

    def __init__(self, headers: dict[str, str], connect_timeout_s: float, total: Traffic) -> None:
        self.traffic = Traffic()
        self.total = total  # of all lanes together
        self._made: socket.socket | None = None
        connector = aiohttp.TCPConnector(limit=1, keepalive_timeout=KEEP_ALIVE_S, socket_factory=self._socket)
        self.http = aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout_s),
            auto_decompress=True,
            trust_env=False,  # no proxy or credentials that were not asked for
            middlewares=(_stay,),
        )

    def _socket(self, info: tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]]) -> socket.socket:
        family, kind, protocol = info[:3]
        made = _CountingSocket(family, kind, protocol)
        made.lane = self
        self._made = made  # one at a time
        return made

    def hang_up(self) -> None:
        """End the connection under whoever reads from it, who is told so at once; aiohttp's own close lets a reader wait for ever."""
        if self._made is not None:
            with suppress(OSError):  # it is gone already
                self._made.shutdown(socket.SHUT_RDWR)


class Lanes:
    """Lends lanes; as many as are wanted at once, and reuses the idle ones."""

    def __init__(self, headers: dict[str, str], connect_timeout_s: float) -> None:
        self._headers = headers
        self._connect_timeout_s = connect_timeout_s
        self.total = Traffic()  # since the lanes were made
        self._idle: list[Lane] = []
        self._lent: set[Lane] = set()
        self._closed = False

    @asynccontextmanager
    async def borrow(self, traffic: Traffic) -> AsyncIterator[Lane]:
        lane = self.take(traffic)
        try:
            yield lane
        finally:
            await self.give_back(lane)

    def take(self, traffic: Traffic) -> Lane:
        """A lane until `give_back`; raises ClientClosed after `close`."""
        if self._closed:
            raise ClientClosed
        lane = self._idle.pop() if self._idle else Lane(self._headers, self._connect_timeout_s, self.total)
        lane.traffic = traffic
        self._lent.add(lane)
        return lane

    async def give_back(self, lane: Lane) -> None:
        self._lent.discard(lane)
        lane.traffic = Traffic()
        if self._closed:
            await lane.http.close()
        else:
            self._idle.append(lane)

    async def close(self) -> None:
        """Close every connection; one that is lent is ended now, and closed when it is given back. May be called again."""
        self._closed = True
        idle, self._idle = self._idle, []
        for lane in self._lent:
            lane.hang_up()
        await asyncio.gather(*(lane.http.close() for lane in idle))
