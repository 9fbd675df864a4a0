"""A server on a thread of its own, with its own event loop: for programs that have none, or that use theirs otherwise."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from ..engine.frontend import Frontend
from .app import create_app
from .running import RunningServer
from .settings import ServerSettings


@contextmanager
def serve_on_thread(open_frontend: Callable[[], Awaitable[Frontend]], settings: ServerSettings | None = None) -> Iterator[ThreadedServer]:
    """Serve while the block runs. `open_frontend` runs in the server's loop, and its client is closed at the end."""
    threaded = ThreadedServer(open_frontend, settings or ServerSettings())
    threaded.start()
    try:
        yield threaded
    finally:
        threaded.stop()


class ThreadedServer:
    """Started and stopped from another thread; `url` is known once it has started."""

    def __init__(self, open_frontend: Callable[[], Awaitable[Frontend]], settings: ServerSettings) -> None:
        self._open = open_frontend
        self._settings = settings
        self._thread = threading.Thread(target=self._main, name="hybrid-server", daemon=True)
        self._listening = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: RunningServer | None = None
        self.url = ""

    def start(self) -> None:
        """Return when it listens; raises what opening or listening raised."""
        self._thread.start()
        self._listening.wait()
        self._raise_failure()

    def stop(self) -> None:
        """Drain, close, and wait for the thread's end; raises what went wrong in it since it listened. May be called again."""
        if self._loop is not None and self._server is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._server.drain)
        self._thread.join()
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure
        finally:
            self._listening.set()

    async def _serve(self) -> None:
        frontend = await self._open()
        try:
            self._server = RunningServer(create_app(frontend, self._settings), self._settings)
            self.url = self._server.url
            self._loop = asyncio.get_running_loop()
            await self._server.serve(self._listening.set)
        finally:
            await frontend.client.close()
