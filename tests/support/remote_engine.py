"""The plainest engine for remote sessions: a target that is a function of the sequence, one round at a time, nothing batched or cached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hybrid.cloud.engine.client import EngineClient
from hybrid.cloud.engine.messages import Add, Draft, EngineStats, StepOutput, TokenLogprobs
from hybrid.cloud.engine.request import resolve_max_tokens
from hybrid.cloud.engine.session import RemoteSession, Verify
from hybrid.cloud.engine.stream import OutputStream
from hybrid.shared_protocol.verify import cut, verify

Target = Callable[[Sequence[int], Add], int]  # (sequence, request) -> the target's own draw after it


class RemoteEngine(EngineClient):
    """`held`: prompts and drafts wait until `release` is called. `aborted` names requests that were left before their end."""

    kernel_id = "toy-1"

    def __init__(self, target: Target, *, eos_ids: Sequence[int] = (), max_model_len: int = 64, held: bool = False) -> None:
        self.max_model_len = max_model_len
        self.aborted: list[str] = []
        self.added: list[Add] = []
        self.drafts: list[Draft] = []
        self._target = target
        self._eos_ids = frozenset(eos_ids)
        self._gate = asyncio.Event()
        if not held:
            self._gate.set()
        self._live: dict[str, tuple[Add, RemoteSession, OutputStream]] = {}

    def add(self, message: Add) -> OutputStream:
        assert message.remote
        stream = OutputStream(message.request_id, self.abort)
        self.added.append(message)
        self._live[message.request_id] = message, RemoteSession(message.prompt_ids), stream
        self._later(lambda: self._give(StepOutput(message.request_id, parked=True)))
        return stream

    def draft(self, message: Draft) -> None:
        self.drafts.append(message)
        self._later(lambda: self._answer(message))

    def abort(self, request_id: str) -> None:
        if self._live.pop(request_id, None) is not None:
            self.aborted.append(request_id)

    def release(self) -> None:
        self._gate.set()

    def hold(self) -> None:
        self._gate.clear()

    def fail(self, error: str) -> None:
        for request_id in list(self._live):
            self._give(StepOutput(request_id, finish_reason="error", error=error))

    @property
    def alive(self) -> int:
        return len(self._live)

    def stats(self) -> EngineStats:
        raise AssertionError("no test asks")

    async def drain(self) -> None: ...

    async def close(self) -> None: ...

    def _later(self, work: Callable[[], None]) -> None:
        async def run() -> None:
            await self._gate.wait()
            work()

        self._task = asyncio.ensure_future(run())

    def _give(self, output: StepOutput) -> None:
        if output.request_id in self._live:
            self._live[output.request_id][2].push(output)
            if output.finish_reason is not None:
                del self._live[output.request_id]

    def _answer(self, draft: Draft) -> None:
        if draft.request_id not in self._live:
            return
        add, session, _ = self._live[draft.request_id]
        answer = session.offer(draft)
        if not isinstance(answer, Verify):
            self._give(StepOutput(draft.request_id, answer=answer, parked=True))
            return
        committed = tuple(session.committed)
        draws = [self._target((*committed, *answer.ids[:i]), add) for i in range(len(answer.ids) + 1)]
        room = resolve_max_tokens(len(add.prompt_ids), add.params.max_tokens, self.max_model_len) - (len(committed) - len(add.prompt_ids))
        end_ids = self._eos_ids | set(add.params.stop_token_ids)
        accepted = cut(verify(answer.ids, draws), answer.ids, end_ids=end_ids, room=room)
        new_ids = answer.ids[: accepted.n_accepted] + (() if accepted.token is None else (accepted.token,))
        logprobs = tuple(TokenLogprobs(i, -0.25, ((i, -0.25),)) for i in new_ids) if add.params.logprobs is not None else ()
        self._give(
            StepOutput(
                draft.request_id,
                new_ids,
                logprobs,
                finish_reason=accepted.finish_reason,
                stop_token_id=accepted.stop_token_id,
                answer=session.settle(accepted.n_accepted, accepted.token),
                parked=accepted.finish_reason is None,
            )
        )
