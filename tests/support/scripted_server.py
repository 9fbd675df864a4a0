"""An HTTP server that answers with the very bytes it was told to, however wrong, and remembers all that it received."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

FOREVER = object()  # in a script: say no more, keep the connection open
CLOSE = object()  # in a script: close the connection
Script = Iterable[bytes | object]


@dataclass
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        return json.loads(self.body)


@dataclass
class ScriptedServer:
    """`answer(request)` gives the bytes to write, piece by piece; the connection then waits for the next request."""

    answer: Callable[[Received], Script]
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    bytes_received: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)  # a client has gone that was told no more
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                method, path, _ = lines[0].split(" ")
                headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.bytes_received += len(head) + len(body)
                request = Received(method, path, headers, body)
                self.requests.append(request)
                for piece in self.answer(request):
                    if piece is FOREVER:
                        await reader.read()
                        self.left.set()
                        return
                    if piece is CLOSE:
                        return
                    assert isinstance(piece, bytes)
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted_server(answer: Callable[[Received], Script]) -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(answer)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    scripted.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield scripted
    server.close()


def response(status: int, body: object, headers: str = "") -> bytes:
    """A whole response with a JSON body (bytes as they are)."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} X\r\ncontent-length: {len(data)}\r\n{headers}\r\n".encode() + data


def sse_head() -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def piece(data: bytes) -> bytes:
    """A piece of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


END = b"0\r\n\r\n"


def event(data: object) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return piece(f"data: {text}\n\n".encode())


def chunk(content: str | None = None, finish: str | None = None, **more: object) -> bytes:
    delta = {} if content is None else {"content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "big", "choices": [choice], **more})


def completion(content: str, tokens: int = 3) -> dict[str, object]:
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "big", "choices": [choice], "usage": usage}


def says(*script: bytes | object):  # type: ignore[no-untyped-def]
    def answer(request: Received) -> Script:
        return script

    return answer
