"""A web server on loopback that serves bytes from memory, with Range and If-Range, and breaks in the ways that it is told to."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple


class Asked(NamedTuple):
    path: str
    start: int | None  # the first byte that was asked for; None: no Range
    headers: Mapping[str, str]


@dataclass
class Fault:
    """What goes wrong with one answer."""

    status: int = 200  # another one: instead of the file
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None  # bytes of this answer; then the connection ends
    stall_after: int | None = None  # bytes of this answer; then nothing comes, until the server ends
    change: Callable[[bytes], bytes] = lambda body: body


@dataclass
class FileServer:
    files: dict[str, bytes] = field(default_factory=dict)  # path -> content
    types: dict[str, str] = field(default_factory=dict)  # path -> content type
    faults: list[Fault] = field(default_factory=list)  # one for each answer to a file that ends in a suffix of `faulty`
    faulty: tuple[str, ...] = (".gguf", ".whl")
    ranges: bool = True
    etag: str | None = '"1"'
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    ended: threading.Event = field(default_factory=threading.Event)

    def starts(self, suffix: str = "") -> list[int | None]:
        """First bytes that were asked for of paths that end so."""
        return [asked.start for asked in self.asked if asked.path.endswith(suffix)]


@contextmanager
def serving(server: FileServer, certificate: Path | None = None) -> Iterator[FileServer]:
    """`certificate`: speak TLS with it, and with the key in the same file."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(server, self)

        def do_CONNECT(self) -> None:  # asked as a proxy: it lets nobody through
            server.asked.append(Asked(self.path, None, dict(self.headers)))
            self.send_error(502)

        def log_message(self, format: str, *arguments: object) -> None: ...

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None: ...  # the client has gone

    with Quiet(("127.0.0.1", 0), Handler) as listening:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.url = f"{'https' if certificate else 'http'}://127.0.0.1:{listening.server_port}"
        try:
            yield server
        finally:
            server.ended.set()
            listening.shutdown()
            thread.join()


def answer(server: FileServer, handler: BaseHTTPRequestHandler) -> None:
    path = handler.path.partition("?")[0]
    match = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    start = int(match[1]) if match else None
    server.asked.append(Asked(handler.path, start, dict(handler.headers)))
    fault = server.faults.pop(0) if server.faults and path.endswith(server.faulty) else Fault()
    whole = server.files.get(path)
    if fault.status != 200 or whole is None:
        handler.send_response(404 if fault.status == 200 else fault.status)
        for name, value in fault.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    if start is not None and (not server.ranges or handler.headers.get("If-Range", server.etag) != server.etag):
        start = None
    if start is not None and start >= len(whole):
        handler.send_error(416)
        return
    body = fault.change(whole[start or 0 :])
    handler.send_response(200 if start is None else 206)
    if start is not None:
        handler.send_header("Content-Range", f"bytes {start}-{len(whole) - 1}/{len(whole)}")
    if server.etag is not None:
        handler.send_header("ETag", server.etag)
    stated = {"Content-Type": server.types.get(path, "application/octet-stream"), "Content-Length": str(len(body))}
    for name, value in (stated | dict(fault.headers)).items():
        handler.send_header(name, value)
    handler.end_headers()
    ends = fault.cut_after if fault.cut_after is not None else fault.stall_after
    handler.wfile.write(body[:ends])
    if fault.stall_after is not None:
        server.ended.wait(60)
    handler.close_connection = True
