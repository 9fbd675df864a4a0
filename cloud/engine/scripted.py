"""An engine that says what it is told, step by step: for tests of everything above `EngineClient`.

It keeps the engine's manners (slots, queue, aborts, max_tokens, stop ids, one last output per request) and has no model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from weakref import WeakValueDictionary

from ...shared_protocol.errors import ContextOverflow, Unavailable
from .messages import Add, Draft, EngineStats, FinishReason, StepOutput, TokenLogprobs
from .stream import OutputStream

_TURNS = 200  # turns of the loop that `advance` leaves to readers; a reader that needs more is blocked on something else


@dataclass(frozen=True, slots=True)
class Script:
    """What a request says: one piece per step, as bytes or as token ids. An empty piece is a step without output, such as prefill.

    The last piece carries `finish`; None means that the request goes on in silence until it is aborted.
    """

    pieces: Sequence[bytes | tuple[int, ...]]
    finish: FinishReason | None = "stop"
    error: str | None = None  # with finish "error"
    num_cached: int = 0
    logprob: float = -0.5  # of every token


@dataclass(slots=True)
class _Speaking:
    add: Add
    script: Script
    step: int = 0  # pieces said
    said: int = 0  # tokens said


class ScriptedEngine:
    """An `EngineClient`. `automatic`: steps follow each other while there is work; else each waits for `await advance()`.

    `script`: one for all requests, or a function of the `Add`. `ids_of`: bytes -> token ids; by default id = byte.
    Facts for assertions: `added`, `drafts`, `aborted` (ids left before their end), `steps`, `stats()`.
    """

    kernel_id = "scripted-1"

    def __init__(
        self,
        script: Script | Callable[[Add], Script],
        *,
        automatic: bool = True,
        ids_of: Callable[[bytes], Sequence[int]] = tuple,
        slots: int = 64,
        max_queue: int | None = None,
        max_model_len: int = 8192,
        eos_id: int | None = None,
    ) -> None:
        self.max_model_len = max_model_len
        self.added: list[Add] = []
        self.drafts: list[Draft] = []
        self.aborted: list[str] = []
        self.steps = 0
        self.tokens = 0
        self._script = script if callable(script) else lambda _: script
        self._automatic = automatic
        self._ids_of = ids_of
        self._slots = slots
        self._max_queue = max_queue
        self._eos_id = eos_id
        self._requests: dict[str, _Speaking] = {}  # arrival order; the first `slots` of them run
        self._streams: WeakValueDictionary[str, OutputStream] = WeakValueDictionary()
        self._runner: asyncio.Task[None] | None = None
        self._closed = False
        self._healthy = True

    def add(self, message: Add) -> OutputStream:
        if self._closed or not self._healthy:
            raise Unavailable("the engine takes no more requests")
        if len(message.prompt_ids) > self.max_model_len:
            raise ContextOverflow(asked=len(message.prompt_ids), limit=self.max_model_len)
        if self._max_queue is not None and len(self._requests) >= self._slots + self._max_queue:
            raise Unavailable("too many requests are waiting", retry_after_s=1.0)
        assert message.request_id not in self._requests, "request ids are unique among those alive"
        stream = OutputStream(message.request_id, self.abort)
        self._requests[message.request_id] = _Speaking(message, self._script(message))
        self._streams[message.request_id] = stream
        self.added.append(message)
        if self._automatic and (self._runner is None or self._runner.done()):
            self._runner = asyncio.get_running_loop().create_task(self._run())
        return stream

    def draft(self, message: Draft) -> None:
        self.drafts.append(message)

    def abort(self, request_id: str) -> None:
        if self._requests.pop(request_id, None) is not None:
            self.aborted.append(request_id)

    def stats(self) -> EngineStats:
        running = min(len(self._requests), self._slots)
        return EngineStats(
            running=running,
            waiting=len(self._requests) - running,
            parked=0,
            total=self._slots,
            free=self._slots - running,
            cached=0,
            used=running,
            num_preemptions=0,
            prefix_queries=0,
            prefix_hits=0,
            steps=self.steps,
            healthy=self._healthy,
        )

    async def advance(self, steps: int = 1) -> None:
        """Make `steps` steps; after each, let the readers take what it gave."""
        for _ in range(steps):
            self._step()
            for _ in range(_TURNS):
                await asyncio.sleep(0)
                if not any(stream.unread for stream in self._streams.values()):
                    break

    async def drain(self) -> None:
        """Refuse new requests and return when the running ones have ended."""
        self._closed = True
        while self._requests:
            await asyncio.sleep(0)

    async def close(self) -> None:
        self._closed = True
        self._end_all("abort", None)
        if self._runner is not None:
            await asyncio.gather(self._runner, return_exceptions=True)

    def fail(self, error: str) -> None:
        """Die as an engine dies whose kernel failed: every request ends with `error`, none is taken any more."""
        self._healthy = False
        self._end_all("error", error)

    def _end_all(self, reason: FinishReason, error: str | None) -> None:
        for request_id in list(self._requests):
            self._give(StepOutput(request_id, finish_reason=reason, error=error))

    async def _run(self) -> None:
        while self._requests:
            await self.advance()
            await asyncio.sleep(0)

    def _step(self) -> None:
        self.steps += 1
        for request in list(islice(self._requests.values(), self._slots)):
            output = self._say(request)
            if output is not None:
                self._give(output)

    def _give(self, output: StepOutput) -> None:
        if output.finish_reason is not None:
            del self._requests[output.request_id]
        stream = self._streams.get(output.request_id)
        if stream is not None:
            stream.push(output)

    def _say(self, request: _Speaking) -> StepOutput | None:
        """What one step gives: the next piece, cut as an engine cuts it."""
        script, params = request.script, request.add.params
        piece = script.pieces[request.step] if request.step < len(script.pieces) else b""
        request.step += 1
        ids = tuple(self._ids_of(piece)) if isinstance(piece, bytes) else piece
        finish = script.finish if request.step >= len(script.pieces) else None
        stop_id = None
        if finish == "stop" and self._eos_id is not None:
            ids, stop_id = (*ids, self._eos_id), self._eos_id
        for index, token in enumerate(ids):
            if token in params.stop_token_ids:
                ids, finish, stop_id = ids[: index + 1], "stop", token
                break
        room = (params.max_tokens or self.max_model_len) - request.said
        if len(ids) > room or (len(ids) == room and finish is None):
            ids, finish, stop_id = ids[:room], "length", None
        request.said += len(ids)
        self.tokens += len(ids)
        if not ids and finish is None:
            return None
        return StepOutput(
            request.add.request_id,
            ids,
            logprobs=() if params.logprobs is None else tuple(_logprobs(token, script.logprob, params.logprobs) for token in ids),
            finish_reason=finish,
            stop_token_id=stop_id,
            num_cached=script.num_cached,
            error=script.error if finish == "error" else None,
        )


def _logprobs(token: int, logprob: float, top: int) -> TokenLogprobs:
    """The token itself is the most likely; those with ids below it (or above, at the low end) follow."""
    step = -1 if token >= top else 1
    return TokenLogprobs(token, logprob, tuple((token + step * rank, logprob - rank) for rank in range(top)))
