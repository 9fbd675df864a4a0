"""The device's side of one answer that device and cloud write together, round by round.

    device                                    cloud
    Hello, Open(prompt ids) ───────────────►  computes the prompt, as the device does meanwhile
              ◄──────────────── Hello, Opened
    drafts k tokens                           (same noise, so an equal model draws equal tokens)
    Draft(round, ids) ─────────────────────►  draws its own token at each position, keeps the drafts that equal them
              ◄───────────── Verdict(accepted, its own next token, how much may be shown, finish)

Only committed tokens are shown, and of their text only what the cloud says: it holds back what may become a stop string.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

from ..shared_protocol.errors import HybridError, ProtocolError, QuotaExceeded, StreamInterrupted
from ..shared_protocol.frames import (
    MAX_DRAFT_IDS,
    VERSION,
    Cancel,
    CloudFrame,
    CloudHello,
    Draft,
    Error,
    Hello,
    Limits,
    Open,
    Opened,
    Stale,
    Verdict,
)
from ..shared_protocol.openai import Drafts, FinishReason, Origin, Span
from ..shared_protocol.tokenizer import Tokenizer
from ..shared_protocol.verify import prefix_hash
from ..shared_protocol.wire import pack_ids, unpack_ids
from .drafter import Drafter
from .learned import Round
from .piece import Piece, merged, usage_of
from .transport.link import Link
from .transport.remote_errors import error_of_code
from .visible_text import VisibleText
from .wait_for_end import wait_for_end

_GONE = ("lease_expired", "unknown_session")  # codes of Error frames after which nothing more comes

Run = Callable[[Callable[[], object]], Awaitable[object]]  # executes the device's work, in its thread


class Speculation:
    """One answer over one link. After a StreamInterrupted, `drafter.committed`, `origins` and `text` say how far it came."""

    def __init__(self, drafter: Drafter, tokenizer: Tokenizer, opening: Open, clock: Callable[[], float] = time.monotonic) -> None:
        """`opening` holds the drafter's prompt as ids, its sampling and its seed."""
        self.drafter = drafter
        self.origins: list[Origin] = []  # of each output token
        self.text = VisibleText(tokenizer)
        self.drafts = Drafts(rounds=0, proposed=0, accepted=0)
        self.rounds: list[Round] = []
        self._clock = clock
        self._tokenizer = tokenizer
        self._open = opening
        self._session = b""
        self._round = 0
        self._draft_ids = MAX_DRAFT_IDS
        self._corrected = False  # the last round was answered with a correction

    @property
    def output_ids(self) -> list[int]:
        return self.drafter.committed[self._open.prompt_len :]

    async def pieces(self, link: Link, k: int, run: Run) -> AsyncGenerator[Piece, None]:
        """Draft `k` tokens per round until the answer is finished, then close `link`; leaving early cancels the answer.

        Raises FingerprintMismatch, ProtocolError, StreamInterrupted, and whatever error the cloud names.
        """
        finished = False
        try:
            await self._start(link, run)
            while True:
                verdict = await self._play_round(link, k, run)
                if verdict is None:
                    continue
                shown = self.text.show(verdict.visible_len, last=verdict.finish is not None)
                if verdict.finish is not None:
                    finished = True
                    yield self._last_piece(shown, verdict.finish)
                    return
                if shown:
                    yield Piece(text=shown)
        finally:
            try:
                if not finished:
                    with suppress(HybridError):
                        await link.send(Cancel())
            finally:
                await link.close()

    async def _start(self, link: Link, run: Run) -> None:
        await link.send(Hello((VERSION,), Limits()))
        await link.send(self._open)
        # both sides compute the prompt at once
        prefilled = asyncio.ensure_future(run(self.drafter.prefill))
        try:
            hello = await _receive(link)
            if not isinstance(hello, CloudHello) or hello.version != VERSION:
                raise ProtocolError("the cloud speaks another version of the protocol")
            self._draft_ids = min(MAX_DRAFT_IDS, hello.limits.draft_ids)
            opened = await _receive(link)
            if not isinstance(opened, Opened):
                raise ProtocolError(f"the cloud answered Open with {type(opened).__name__}")
            self._session = opened.session
        except BaseException:
            prefilled.cancel()
            await wait_for_end(prefilled)
            raise
        await prefilled

    async def _play_round(self, link: Link, k: int, run: Run) -> Verdict | None:
        """One draft and its answer; None when there is more to do: a correction was taken, or drafts are no longer."""
        drafter, limit = self.drafter, self._open.sampling.max_tokens
        if limit is not None:
            k = min(k, limit - len(self.output_ids) - 1)  # the cloud adds a token of its own
        k = max(0, min(k, drafter.room, self._draft_ids))
        ids = await run(lambda: drafter.draft(k))
        assert isinstance(ids, tuple)
        base = len(drafter.committed)
        self._round += 1
        sent = self._clock()
        await link.send(Draft(self._session, self._round, base, prefix_hash(drafter.committed), pack_ids(ids)))
        try:
            answer = await _receive(link)
        except QuotaExceeded:  # for drafts: too many were wrong; the round was not taken
            if not ids:
                raise
            self._draft_ids, self._round = 0, self._round - 1
            await run(drafter.drop)
            return None
        if isinstance(answer, Verdict | Stale) and answer.round != self._round:
            raise ProtocolError(f"the cloud answered round {answer.round}, round {self._round} was asked", round=answer.round)
        if isinstance(answer, Stale):
            if self._corrected:
                raise ProtocolError("the cloud corrects what it has just corrected", round=answer.round)
            await run(lambda: self._correct(answer))
            self._corrected = True
            self._check_length(None)
            return None
        if not isinstance(answer, Verdict):
            raise ProtocolError(f"the cloud answered Draft with {type(answer).__name__}")
        if answer.token is not None and answer.token >= self._tokenizer.vocab_size:
            raise ProtocolError(f"the cloud's token {answer.token} is outside the vocabulary", code="token_id", round=answer.round)
        seen = Round(len(ids), answer.n_accepted, self._clock() - sent)
        committed = drafter.settle(answer.n_accepted, answer.token)
        self.rounds.append(seen)
        sofar = self.drafts
        self.drafts = Drafts(sofar.rounds + 1, sofar.proposed + len(ids), sofar.accepted + answer.n_accepted)
        if committed != answer.committed_len:
            raise ProtocolError(f"the cloud has committed {answer.committed_len} tokens, the device {committed}", round=answer.round)
        self.origins += _origins(answer.n_accepted, len(drafter.committed) - base - answer.n_accepted)
        self.text.extend(drafter.committed[base:])
        self._corrected = False
        self._check_length(answer.finish)
        return answer

    def _check_length(self, finish: FinishReason | None) -> None:
        limit = self._open.sampling.max_tokens
        if limit is not None and len(self.output_ids) >= limit + (finish is not None):
            raise ProtocolError(f"the cloud goes on after {limit} tokens, all that were asked for")

    def _correct(self, stale: Stale) -> None:
        """Take the cloud's tokens for ours. What was shown already must be part of them: text is never taken back."""
        start = stale.start - self._open.prompt_len
        if start < 0:
            raise ProtocolError("the cloud corrects the prompt", round=stale.round)
        ids = unpack_ids(stale.ids, self._tokenizer.vocab_size)
        known = len(self.origins)
        if self.drafter.rewind(stale.start, ids) != stale.committed_len:
            raise ProtocolError(f"the cloud's correction does not lead to {stale.committed_len} tokens", round=stale.round)
        self.origins = self.origins[:start] + _origins(max(0, start - known), len(ids))
        self.text.replace(self.output_ids)

    def _last_piece(self, shown: str, finish: FinishReason) -> Piece:
        spans = tuple(merged(Span(origin, 1) for origin in self.origins))
        return Piece(text=shown, spans=spans, finish_reason=finish, usage=usage_of(self._open.prompt_len, len(self.origins)))


async def _receive(link: Link) -> CloudFrame:
    """The next frame, unless it is an error, which is raised."""
    frame = await link.receive()
    if isinstance(frame, Error) and frame.code in _GONE:
        raise StreamInterrupted(f"the cloud has ended this answer: {frame.message}")
    if isinstance(frame, Error):
        raise error_of_code(frame.code, frame.message, frame.retry_after_s)
    return frame


def _origins(drafted: int, cloud: int) -> list[Origin]:
    origins: list[Origin] = ["drafted"] * drafted
    return origins + ["cloud"] * cloud
