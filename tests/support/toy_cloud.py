"""A cloud over the toy model: the real session rules, a target of one line, and faults on request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybrid.cloud.engine import messages
from hybrid.cloud.engine.session import RemoteSession, Verify
from hybrid.shared_protocol.errors import StreamInterrupted
from hybrid.shared_protocol.frames import (
    VERSION,
    Cancel,
    CloudFrame,
    CloudHello,
    DeviceFrame,
    Draft,
    Error,
    Hello,
    Limits,
    Open,
    Opened,
    Stale,
    Verdict,
)
from hybrid.shared_protocol.sampling import SamplingParams, sample
from hybrid.shared_protocol.verify import cut, verify
from hybrid.shared_protocol.wire import pack_ids, unpack_ids
from hybrid.tests.support.toy_runtime import VOCAB, toy_logits

TICKET = b"t" * 16
SESSION = b"s" * 16
Tamper = Callable[[CloudFrame], CloudFrame]


class ToyCloud:
    """`handle` is what a `LoopbackLink` wants. `dies_at_round`: the link breaks when that round arrives."""

    def __init__(self, model: int = 0, end_ids: frozenset[int] = frozenset(), dies_at_round: int = 0, tamper: Tamper = lambda f: f) -> None:
        self.frames: list[DeviceFrame] = []
        self.cancelled = False
        self._model = model
        self._end_ids = end_ids
        self._dies_at_round = dies_at_round
        self._tamper = tamper

    def plain(self, prompt: Sequence[int], params: SamplingParams, seed: int) -> list[int]:
        """The whole answer, token by token."""
        ids = list(prompt)
        while len(ids) - len(prompt) < (params.max_tokens or 20):
            ids.append(self._draw(ids, params, seed))
            if ids[-1] in self._end_ids:
                break
        return ids[len(prompt) :]

    async def handle(self, frame: DeviceFrame) -> list[CloudFrame]:
        self.frames.append(frame)
        return [self._tamper(answer) for answer in self._answers(frame)]

    def _answers(self, frame: DeviceFrame) -> list[CloudFrame]:
        if isinstance(frame, Hello):
            return [CloudHello(VERSION, Limits())]
        if isinstance(frame, Open):
            assert frame.ids is not None
            self._open = frame
            self._session = RemoteSession(unpack_ids(frame.ids, VOCAB))
            return [Opened(SESSION, "toy", TICKET, 0, 30)]
        if isinstance(frame, Cancel):
            self.cancelled = True
            return []
        assert isinstance(frame, Draft)
        assert frame.session == SESSION
        if frame.round == self._dies_at_round:
            raise StreamInterrupted("the wire was cut")
        return [self._verify(frame)]

    def _verify(self, frame: Draft) -> CloudFrame:
        ids = unpack_ids(frame.ids, VOCAB)
        answer = self._session.offer(messages.Draft("r", frame.round, frame.base_len, frame.prefix_hash, ids))
        finish = None
        if isinstance(answer, Verify):
            committed, params = self._session.committed, self._open.sampling
            draws = [self._draw([*committed, *answer.ids[:i]], params, self._open.seed) for i in range(len(answer.ids) + 1)]
            room = (params.max_tokens or 20) - (len(committed) - self._open.prompt_len)
            accepted = cut(verify(answer.ids, draws), answer.ids, end_ids=self._end_ids, room=room)
            finish = accepted.finish_reason
            answer = self._session.settle(accepted.n_accepted, accepted.token)
        if isinstance(answer, messages.Verdict):
            output = self._session.committed[self._open.prompt_len :]
            visible = sum(i not in self._end_ids for i in output)  # toy tokens are one byte each
            return Verdict(answer.round, answer.n_accepted, answer.token, answer.committed_len, visible, TICKET, 0, 30, finish)
        if isinstance(answer, messages.Stale):
            return Stale(answer.round, answer.start, pack_ids(answer.ids), answer.committed_len, TICKET, 0)
        assert isinstance(answer, messages.Refused)
        return Error(answer.code, answer.message, answer.round)

    def _draw(self, ids: Sequence[int], params: SamplingParams, seed: int) -> int:
        return sample(toy_logits(ids, self._model), params, seed, len(ids))
