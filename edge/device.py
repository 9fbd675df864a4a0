"""The device as the client's event loop sees it: one model, one thread, one answer at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ..router.request import RouteRequest
from ..shared_protocol.errors import Cancelled, ClientClosed
from ..shared_protocol.model import Model, load_model
from ..shared_protocol.sampling import SamplingParams
from .open_runtime import RuntimeName, open_runtime
from .session import EdgeAnswer, EdgeChunk, Session
from .wait_for_end import wait_for_end

T = TypeVar("T")


class Device:
    """Loads its model on first use, in its own thread, where every call of the runtime runs as well.

    When a task that waits for the device is cancelled, the runtime is told to stop and the task ends once it has: nobody else ever
    finds the device in the middle of something.
    """

    def __init__(
        self,
        source: str | Path | Model,
        *,
        runtime: RuntimeName = "native",
        context: int | None = None,
        threads: int | None = None,
        target: str | None = None,
    ) -> None:
        self._source = source
        self._runtime = runtime
        self._context = context
        self._threads = threads
        self._target = target
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="hybrid-edge")
        self._turn = asyncio.Lock()
        self._loading = asyncio.Lock()
        self._session: Session | None = None
        self._closed = False

    @property
    def session(self) -> Session:
        assert self._session is not None, "load first"
        return self._session

    @property
    def loaded(self) -> bool:
        return self._session is not None

    @property
    def name(self) -> str:
        return self.session.held.card.name

    @property
    def context(self) -> int:
        return self.session.held.context

    @property
    def can_draft(self) -> bool:
        """Whether its runtime can take back what the cloud does not accept."""
        return self._session is not None and self._session.held.can_truncate

    @property
    def busy(self) -> bool:
        return self._turn.locked()

    async def load(self) -> Session:
        """The session, loaded if it is not yet; raises what loading raises, and tries again at the next call. ClientClosed when closed."""
        async with self._loading:
            if self._closed:
                raise ClientClosed
            if self._session is None:
                await self._run(self._open)
            return self.session

    async def prompt_ids(self, request: RouteRequest) -> list[int]:
        """Render and tokenise; the device may be busy with another answer meanwhile. Raises TemplateError."""
        session = await self.load()
        return await asyncio.to_thread(session.model.render_chat, request.to_openai())

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Session]:
        """The device for oneself; what it computes is run through `run`."""
        session = await self.load()
        async with self._turn:
            yield session

    async def answer(
        self, prompt_ids: list[int], params: SamplingParams, known: list[int] | None = None, hidden: bool = False
    ) -> AsyncGenerator[EdgeAnswer | EdgeChunk, None]:
        """First the answer's head, then its chunks, with `hidden` states if asked for. Whoever leaves early frees the device."""
        async with self.turn() as session:
            head = await self.run(lambda: session.generate(prompt_ids, params, known=known or (), hidden=hidden))
            yield head
            while True:
                chunk = await self.run(lambda: next(head, None))
                if chunk is None:
                    return
                yield chunk

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in the device's thread. Only inside `turn`."""
        assert self._turn.locked()
        return await self._run(work)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise ClientClosed
        running = asyncio.get_running_loop().run_in_executor(self._worker, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if self._session is not None:
                self._session.cancel()
            with suppress(asyncio.CancelledError):  # one is enough
                await wait_for_end(running)
            if self._session is not None and not self._closed:
                await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._worker, _forget_cancel, self._session))
            raise

    def _open(self) -> None:
        model = self._source if isinstance(self._source, Model) else load_model(self._source)
        runtime = open_runtime(model, self._runtime, threads=self._threads, context=self._context, target=self._target)
        self._session = Session(runtime, model)  # kept if nobody waits any more

    async def close(self) -> None:
        """Wait for what runs, then free the model; may be called again."""
        async with self._loading:
            if self._closed:
                return
            self._closed = True
            if self._session is not None:
                self._session.cancel()
                await asyncio.get_running_loop().run_in_executor(self._worker, self._session.held.close)
            self._worker.shutdown(wait=False)


def _forget_cancel(session: Session) -> None:
    """A cancellation that came when nothing ran any more must not meet the next answer."""
    with suppress(Cancelled):
        session.held.extend((), rows=0)
