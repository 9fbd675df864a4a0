"""One session as its device sees it: the engine's answers as frames, with what may be shown and a fresh ticket in each."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from ....shared_protocol import frames
from ....shared_protocol.errors import EngineFailed, HybridError, Unavailable
from ....shared_protocol.frames import pack_ids
from ....shared_protocol.sampling import SamplingParams
from ....shared_protocol.ticket import Claims, issue
from ....shared_protocol.tokenizer import Tokenizer
from ....shared_protocol.verify import PrefixHash
from ...engine.completion import Completion
from ...engine.messages import Refused, Stale, StepOutput, TokenLogprobs, Verdict


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session was opened with."""

    session_id: bytes
    request_id: str  # in the engine
    key_id: str
    model_hash: str
    kernel_id: str
    seed: int
    sampling: SamplingParams
    prompt_ids: tuple[int, ...]
    lease_s: int
    ticket_s: int


class SpeculateSession:
    """Turns outputs into frames. `finish` is set once the answer has ended; its last verdicts stay for repeats.

    A stop string inside a round cuts it: tokens after the one that completed it are not committed, shown or counted.

    new_ids     a1 a2 a3 t      a3 completes a stop string
    verdict     n_accepted 2+1, token None
    """

    def __init__(self, opening: Opening, tokenizer: Tokenizer, secret: bytes) -> None:
        self.opening = opening
        self.finish: frames.Finish | None = None
        self._secret = secret
        self._completion = Completion(tokenizer, opening.sampling)
        self._hash = PrefixHash(opening.prompt_ids)
        self._visible = 0
        self._answered: OrderedDict[int, tuple[frames.Draft, frames.Verdict]] = OrderedDict()

    @property
    def committed_len(self) -> int:
        """Tokens, prompt and answer."""
        return self._hash.length

    def opened(self, wall: float) -> frames.Opened:
        ticket, expiry = self._ticket(wall)
        return frames.Opened(self.opening.session_id, self.opening.kernel_id, ticket, expiry, self.opening.lease_s)

    def repeated(self, draft: frames.Draft) -> frames.CloudFrame:
        """What a draft gets after the end, when the engine has forgotten the session: the verdict again, if it is a repeat."""
        known, verdict = self._answered.get(draft.round, (None, None))
        if known == draft and verdict is not None:
            return verdict
        code = "round_order" if known is None else "round_conflict"
        return frames.Error(code, f"round {draft.round} came after the answer had ended", draft.round)

    def frame_of(self, draft: frames.Draft, output: StepOutput, wall: float) -> frames.CloudFrame:
        """The frame for the engine's answer to a draft. Raises EngineFailed or Unavailable when it gave none."""
        match output.answer:
            case Verdict() as verdict:
                known = self._answered.get(verdict.round)
                if known is not None:  # the engine repeats itself when the device does
                    return known[1]
                frame = self._verdict(verdict, output, wall)
                self._answered[verdict.round] = draft, frame
                if len(self._answered) > frames.WINDOW:
                    self._answered.popitem(last=False)
                return frame
            case Stale() as stale:
                ticket, expiry = self._ticket(wall)
                return frames.Stale(stale.round, stale.start, pack_ids(stale.ids), stale.committed_len, ticket, expiry)
            case Refused() as refused:
                return frames.Error(refused.code, refused.message, refused.round)
        raise failure(output)

    def _verdict(self, verdict: Verdict, output: StepOutput, wall: float) -> frames.Verdict:
        chunk = self._completion.push(output)
        self._visible += len(chunk.text.encode())
        self._hash.extend(chunk.token_ids)
        n_accepted, token = verdict.n_accepted, verdict.token
        dropped = len(output.new_ids) - len(chunk.token_ids)  # after a stop string
        if dropped:
            n_accepted -= dropped - (token is not None)
            token = None
        if chunk.finish_reason in ("stop", "length"):
            self.finish = chunk.finish_reason
        ticket, expiry = self._ticket(wall)
        return frames.Verdict(
            round=verdict.round,
            n_accepted=n_accepted,
            token=token,
            committed_len=self._hash.length,
            visible_len=self._visible,
            ticket=ticket,
            expiry=expiry,
            lease_s=self.opening.lease_s,
            finish=self.finish,
            logprobs=tuple(map(_logprobs, output.logprobs[: len(chunk.token_ids)])) or None,
        )

    def _ticket(self, wall: float) -> tuple[bytes, int]:
        opening = self.opening
        expiry = int(wall) + opening.ticket_s
        claims = Claims(
            key_id=opening.key_id,
            model_hash=opening.model_hash,
            kernel_id=opening.kernel_id,
            seed=opening.seed,
            sampling=opening.sampling,
            prompt_len=len(opening.prompt_ids),
            committed_len=self._hash.length,
            prefix_hash=self._hash.digest(),
            expiry=expiry,
        )
        return issue(self._secret, claims), expiry


def failure(output: StepOutput) -> HybridError:
    """Why an engine ended a session by itself."""
    if output.finish_reason == "error":
        return EngineFailed(output.error or "the engine failed")
    return Unavailable("the engine ended this session", hint="it is closing; try again")


def _logprobs(token: TokenLogprobs) -> frames.TokenLogprobs:
    return frames.TokenLogprobs(token.token_id, token.logprob, pack_ids([i for i, _ in token.top]), tuple(p for _, p in token.top))
