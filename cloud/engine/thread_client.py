"""An engine on a thread of its own, for one event loop.

event loop   add, draft, abort ──► inbox ─┐                      ┌─► streams
engine thread                             └─► engine.step() ─────┘ one call_soon_threadsafe per step

The thread sleeps on its inbox while there is nothing to do.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from queue import Empty, SimpleQueue
from weakref import WeakValueDictionary

from msgspec.structs import replace

from ...shared_protocol.errors import EngineFailed, HybridError, Unavailable
from .engine import Engine
from .messages import Abort, Add, Draft, EngineStats, StepOutput
from .request import resolve_max_tokens
from .stream import OutputStream

log = logging.getLogger(__name__)
_STOP = None  # in the inbox: end the thread


class ThreadEngineClient:
    """An `EngineClient`. Made anywhere; belongs to the loop of its first `add`. It owns the engine and closes it.

    `max_queue`: requests that may wait for their first output at a time; beyond that `add` raises Unavailable.
    """

    def __init__(self, engine: Engine, *, max_queue: int = 256, retry_after_s: float = 1.0) -> None:
        self.kernel_id = engine.executor.kernel_id
        self.max_model_len = engine.max_model_len
        self._engine = engine
        self._max_queue = max_queue
        self._retry_after_s = retry_after_s
        self._inbox: SimpleQueue[Add | Draft | Abort | None] = SimpleQueue()
        self._stats = engine.stats()
        # the loop's side
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._streams: WeakValueDictionary[str, OutputStream] = WeakValueDictionary()
        self._unheard: set[str] = set()  # no output yet
        self._alive: set[str] = set()  # no last output yet
        self._drained: asyncio.Event | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="hybrid-engine", daemon=True)
        self._thread.start()

    def add(self, message: Add) -> OutputStream:
        if self._closing or not self._stats.healthy:
            raise Unavailable("the engine has failed" if not self._stats.healthy else "the engine takes no more requests")
        resolve_max_tokens(len(message.prompt_ids), message.params.max_tokens, self.max_model_len)
        if len(self._unheard) >= self._max_queue:
            raise Unavailable(f"{len(self._unheard)} requests wait already", retry_after_s=self._retry_after_s)
        if self._loop is None:
            self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        assert self._loop is asyncio.get_running_loop(), "a client belongs to one event loop"
        assert message.request_id not in self._alive, "request ids are unique among those alive"
        stream = OutputStream(message.request_id, self.abort)
        self._streams[message.request_id] = stream
        self._unheard.add(message.request_id)
        self._alive.add(message.request_id)
        self._inbox.put(message)
        return stream

    def draft(self, message: Draft) -> None:
        self._inbox.put(message)

    def abort(self, request_id: str) -> None:
        loop = self._loop
        if loop is not None and threading.get_ident() != self._loop_thread:  # a stream may be collected on any thread
            if not loop.is_closed():
                loop.call_soon_threadsafe(self.abort, request_id)
        elif request_id in self._alive:
            self._forget(request_id)
            self._inbox.put(Abort(request_id))

    def stats(self) -> EngineStats:
        """As of the engine's last step or message."""
        return self._stats

    async def drain(self) -> None:
        self._closing = True
        if self._alive:
            self._drained = self._drained or asyncio.Event()
            await self._drained.wait()

    async def close(self) -> None:
        self._closing = True
        self._inbox.put(_STOP)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self._deliver([StepOutput(request_id, finish_reason="abort") for request_id in self._alive])

    def _fail(self, error: str) -> None:
        self._deliver([StepOutput(request_id, finish_reason="error", error=error) for request_id in self._alive])

    def _forget(self, request_id: str) -> None:
        self._unheard.discard(request_id)
        self._alive.discard(request_id)
        if self._drained is not None and not self._alive:
            self._drained.set()

    def _deliver(self, outputs: list[StepOutput]) -> None:
        """On the loop: hand outputs to their streams; those of requests that were left are dropped."""
        for output in outputs:
            if output.request_id not in self._alive:
                continue
            self._unheard.discard(output.request_id)
            if output.finish_reason is not None:
                self._forget(output.request_id)
            stream = self._streams.get(output.request_id)
            if stream is not None:
                stream.push(output)

    def _run(self) -> None:
        """The engine's thread."""
        engine, open = self._engine, True
        try:
            while open:
                open, outputs = self._take_messages()
                outputs += engine.step() if open else []
                if not engine.has_work:
                    self._check_idle()
                self._stats = engine.stats()  # before the outputs: who reads of an end finds it in the books
                if outputs and self._loop is not None:
                    self._loop.call_soon_threadsafe(self._deliver, outputs)
        except Exception:
            log.exception("the engine's thread failed")
            self._stats = replace(self._stats, healthy=False)
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._fail, "the engine's thread failed")
        finally:
            engine.close()

    def _take_messages(self) -> tuple[bool, list[StepOutput]]:
        """Wait for a message if there is nothing to do, then take all that are there. False when one of them ends the thread."""
        refused: list[StepOutput] = []
        block = not self._engine.has_work
        while True:
            try:
                message = self._inbox.get(block)
            except Empty:
                return True, refused
            block = False
            if isinstance(message, Add):
                try:
                    self._engine.add(message)
                except HybridError as error:
                    refused.append(StepOutput(message.request_id, finish_reason="error", error=str(error)))
            elif isinstance(message, Draft):
                self._engine.draft(message)
            elif isinstance(message, Abort):
                self._engine.abort(message.request_id)
            else:
                return False, refused

    def _check_idle(self) -> None:
        try:
            self._engine.check_idle()
        except EngineFailed:
            log.exception("the engine is unhealthy")
