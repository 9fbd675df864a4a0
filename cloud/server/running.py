"""A server on a socket: in the caller's event loop, or until the process is told to end.

SIGTERM / drain()          limit over or nobody inside        sockets closed
───┼───────────────────────────────┼──────────────────────────────┼───
   new requests: 503, Retry-After  what still runs is aborted     exit
   /ready: 503, /health: 200
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType

import uvicorn

from ...shared_protocol.errors import ConfigError
from ...shared_protocol.wire import MAX_MESSAGE_BYTES
from ..engine.frontend import Frontend
from .app import ServerApp, create_app
from .patience import PatientConnection, patient
from .settings import ServerSettings

log = logging.getLogger("hybrid.server")
_LAST_WORDS_S = 2.0  # after an abort, for telling the clients


class RunningServer:
    """One application listening on one socket."""

    def __init__(self, app: ServerApp, settings: ServerSettings, *, signals: bool = False) -> None:
        self.app = app
        self._settings = settings
        self._socket = _listen(settings)
        self.host, self.port = self._socket.getsockname()[:2]
        self._server = _Server(_config(app, settings), on_signal=self._on_signal if signals else None, clock=app.service.clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drain: asyncio.Task[None] | None = None
        self._signal: int | None = None

    @property
    def url(self) -> str:
        """Of the server's root, without a slash at the end; OpenAI's clients want `url + "/v1"`."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def signal(self) -> int | None:
        """The signal that ended the server, if one did."""
        return self._signal

    async def serve(self, on_ready: Callable[[], None] | None = None) -> None:
        """Serve until `drain()` has ended or a signal came and the drain after it."""
        self._loop = asyncio.get_running_loop()
        self._server.on_ready = on_ready
        await self._server.serve(sockets=[self._socket])
        if self._drain is not None:
            if not self._drain.done():  # a second signal did not wait for it
                self._drain.cancel()
            await asyncio.gather(self._drain, return_exceptions=True)

    def hang_up(self, now: float) -> None:
        """Close the connections whose clients have had their time at `now`, seconds of the application's clock."""
        self._server.hang_up(now)

    def connections(self) -> int:
        """How many are open."""
        return len(self._server.server_state.connections)

    def drain(self) -> asyncio.Task[None]:
        """Turn new requests away, wait for those inside at most `drain_s`, abort the rest, close the sockets."""
        if self._drain is None:
            self.app.service.admission.close()
            self._drain = asyncio.ensure_future(self._drained())
        return self._drain

    async def _drained(self) -> None:
        service = self.app.service
        try:
            await asyncio.wait_for(service.admission.empty(), self._settings.drain_s)
        except TimeoutError:
            await service.frontend.client.close()  # ends every answer with an error that its client is told
            with contextlib.suppress(TimeoutError):  # of clients that do not read
                await asyncio.wait_for(service.admission.empty(), _LAST_WORDS_S)
        finally:
            self._server.end()

    def _on_signal(self, number: int) -> None:
        """From a signal handler: the first drains, the second ends at once."""
        if self._signal is not None:
            self._server.force_exit = True
            self._server.end()
            return
        self._signal = number
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._drain_and_say)

    def _drain_and_say(self) -> None:
        self.drain()
        if inside := self.app.service.admission.inside:
            told = "no new requests; a second signal ends those inside at once"
            log.info({"event": "drain", "inside": inside, "limit_s": self._settings.drain_s, "message": told})


class _Server(uvicorn.Server):
    """uvicorn's server, which closes its sockets at once on a signal, or leaves signals alone; ours drains first."""

    def __init__(self, config: uvicorn.Config, on_signal: Callable[[int], None] | None, clock: Callable[[], float]) -> None:
        super().__init__(config)
        self._on_signal = on_signal
        self._clock = clock
        self._ended = asyncio.Event()
        self.on_ready: Callable[[], None] | None = None

    def end(self) -> None:
        self.should_exit = True
        self._ended.set()

    def hang_up(self, now: float) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, PatientConnection):  # a WebSocket has its lease
                connection.look(now)

    async def main_loop(self) -> None:
        ticks = 0  # of a tenth of a second; uvicorn renews its Date header by them
        while not await self.on_tick(ticks):
            ticks += 10
            self.hang_up(self._clock())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), 1.0)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        if self._on_signal is None:
            yield
        else:
            with super().capture_signals():
                yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.on_ready is not None:
            self.on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        assert self._on_signal is not None
        self._on_signal(sig)


def _config(app: ServerApp, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=patient(app.service.clock, settings.receive_s),
        lifespan="off",
        log_config=None,
        access_log=False,  # it would write raw paths
        server_header=False,
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,  # it undoes the padding of frames and invites bombs
        timeout_keep_alive=60,  # longer than clients keep theirs, or one might send into a closing connection
        timeout_graceful_shutdown=5,
    )


def _listen(settings: ServerSettings) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        hint = "is another server running there? --port 0 takes a free one"
        raise ConfigError(f"cannot listen on {settings.host} port {settings.port}: {error.strerror}", hint=hint) from error
    listener.listen(2048)
    listener.setblocking(False)
    return listener


@asynccontextmanager
async def serve_in_background(frontend: Frontend, settings: ServerSettings | None = None) -> AsyncIterator[RunningServer]:
    """Serve in this event loop while the block runs; leaving it drains. The front-end stays the caller's to close."""
    settings = settings or ServerSettings()
    server = RunningServer(create_app(frontend, settings), settings)
    listening = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(server.serve(lambda: listening.set_result(None)))
    try:
        await asyncio.wait({listening, serving}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield server
    finally:
        server.drain()
        await serving


async def serve_until_signalled(frontend: Frontend, settings: ServerSettings, on_ready: Callable[[RunningServer], None]) -> int:
    """Serve until SIGTERM or SIGINT and the drain after it; return the command's exit code: 0, or 130 after SIGINT."""
    server = RunningServer(create_app(frontend, settings), settings, signals=True)
    await server.serve(lambda: on_ready(server))
    return 130 if server.signal == signal.SIGINT else 0
