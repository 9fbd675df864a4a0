"""A wire that counts and remembers: passes bytes between a client and a server, and can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class CountingProxy:
    url: str = ""
    to_server: bytearray = field(default_factory=bytearray)
    connections: int = 0

    @property
    def bytes_to_server(self) -> int:
        return len(self.to_server)


@asynccontextmanager
async def counting_proxy(server_url: str) -> AsyncIterator[CountingProxy]:
    proxy, target = CountingProxy(), urlsplit(server_url)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: bool) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if count:
                    proxy.to_server += data
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        proxy.connections += 1
        far_reader, far_writer = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(pump(reader, far_writer, True), pump(far_reader, writer, False))

    listening = await asyncio.start_server(connect, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    yield proxy
    listening.close()
