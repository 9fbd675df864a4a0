"""A session and the engine's request behind it, one answer at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from ....shared_protocol import frames
from ...engine.client import EngineClient
from ...engine.messages import Add, Draft, StepOutput
from ..metrics import Metrics
from .limits import KeyMeter
from .session import SpeculateSession, failure


class LiveSession:
    """Holds a place in the server, in its key's quota and in the engine until its answer is finished or `end` is called.

    One call waits at a time.
    """

    def __init__(
        self,
        session: SpeculateSession,
        add: Add,
        client: EngineClient,
        meter: KeyMeter,
        monotonic: Callable[[], float],
        admit: Callable[[], AbstractContextManager[None]],
        metrics: Metrics,
    ) -> None:
        """Hand the prompt to the engine. `admit` gives a place in the server. Raises QuotaExceeded, ContextOverflow, Unavailable."""
        self.session = session
        self._client = client
        self._meter = meter
        self._monotonic = monotonic
        self._metrics = metrics
        self._ended = False
        self._reading: asyncio.Future[StepOutput] | None = None
        with ExitStack() as held:
            held.enter_context(admit())
            held.enter_context(meter.session())
            self._outputs = client.add(add)
            held.callback(client.abort, add.request_id)
            self._held = held.pop_all()

    @property
    def lost(self) -> bool:
        """Ended before its answer was: nothing can be asked of it any more, not even a repeat."""
        return self._ended and self.session.finish is None

    async def opened(self, wall: Callable[[], float]) -> frames.Opened | None:
        """Wait for the prompt; None when the session was ended meanwhile. Raises EngineFailed, Unavailable."""
        output = await self._next(lambda output: output.parked)
        if output is None:
            return None
        self._metrics.count_prompt(len(self.session.opening.prompt_ids))
        return self.session.opened(wall())

    async def answer(self, frame: frames.Draft, ids: tuple[int, ...], wall: Callable[[], float]) -> frames.CloudFrame | None:
        """Have a window verified; None when the session was ended meanwhile. Raises QuotaExceeded, EngineFailed, Unavailable."""
        if self.session.finish is not None:
            return self.session.repeated(frame)
        reserved, wasted = self._meter.reserve_drafts(len(ids), self._monotonic()), 0
        try:
            self._client.draft(Draft(self.session.opening.request_id, frame.round, frame.base_len, frame.prefix_hash, ids))
            output = await self._next(lambda output: output.answer is not None)
            if output is None:
                return None
            before = self.session.committed_len
            answer = self.session.frame_of(frame, output, wall())
            if isinstance(answer, frames.Verdict):
                wasted = len(ids) - answer.n_accepted
                committed = self.session.committed_len - before
                if committed:  # a repeat commits nothing
                    self._metrics.count_round(len(ids), answer.n_accepted, committed)
            if self.session.finish is not None:
                self.end()
            return answer
        finally:
            self._meter.settle_drafts(reserved, wasted, self._monotonic())

    def end(self, reason: str = "abort") -> None:
        """Give the engine's memory back; who waits gets None. `reason` is counted unless the answer has its own. May be called again."""
        if self._ended:
            return
        self._ended = True
        self._metrics.count_finish(self.session.finish or reason)
        self._held.close()
        if self._reading is not None:
            self._reading.cancel()

    async def _next(self, wanted: Callable[[StepOutput], bool]) -> StepOutput | None:
        while not self._ended:
            self._reading = asyncio.ensure_future(anext(self._outputs))
            try:
                await asyncio.wait([self._reading])
            except asyncio.CancelledError:
                self.end()
                raise
            if self._reading.cancelled():
                break
            output = self._reading.result()
            if wanted(output):
                return output
            if output.finish_reason is not None:
                self.end(output.finish_reason)
                raise failure(output)
        return None
