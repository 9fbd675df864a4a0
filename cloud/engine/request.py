"""One request inside the engine: what it asked for, which ids are known, how far it is computed, which blocks it holds."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Literal

from ...shared_protocol.errors import ContextOverflow
from ...shared_protocol.sampling import SamplingParams
from .messages import TokenLogprobs
from .prefix_cache import Chain
from .session import RemoteSession

State = Literal["waiting", "running", "parked", "dormant", "finished"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Three lengths of one sequence.

    num_cached      num_computed         num_tokens
    0 ──────┼────────────────┼───────────────────┤
     prefix cache   in the KV cache     known ids (prompt + output)
    """

    num_cached: int
    num_computed: int
    num_tokens: int

    def __post_init__(self) -> None:
        assert 0 <= self.num_cached <= self.num_computed <= self.num_tokens, self


@dataclass(frozen=True, slots=True)
class Round:
    """A device's window under verification. A window larger than a step is verified in pieces, and answered after the last.

    window a b c d e     step 1: a and b equal their draws, and the third draw is c     num_accepted 3, new_ids a b c, draft_ids d e
                         step 2: d equals its draw, e does not                          answer: 4 accepted, and the draw in e's place
    """

    draft_ids: tuple[int, ...]  # what is left to verify; follows the known ids
    num_accepted: int = 0
    new_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprobs, ...] = ()


@dataclass(slots=True, eq=False)
class Request:
    """State that only the engine's thread touches. `token_ids` and `block_ids` are int32 arrays, so that the runner copies them whole.

    waiting   holds nothing and wants a place
    running   holds a place and its blocks; gets tokens every step
    parked    a remote session between rounds: holds its place and blocks, wants nothing
    dormant   a parked session whose place and blocks were taken back; recomputed at the next draft
    """

    request_id: str
    token_ids: array[int]
    num_prompt: int
    max_tokens: int
    chain: Chain
    params: SamplingParams = field(default_factory=SamplingParams)
    seed: int = 0
    end_ids: frozenset[int] = frozenset()
    session: RemoteSession | None = None  # of a remote request
    state: State = "waiting"
    arrival: int = 0  # order of arrival
    progress: Progress = field(init=False)
    block_ids: array[int] = field(default_factory=lambda: array("i"))
    round: Round | None = None  # the one that is under way, of a remote session
    prompt_cached: int | None = None  # tokens found in the prefix cache when it was admitted first

    def __post_init__(self) -> None:
        self.progress = Progress(0, 0, len(self.token_ids))

    @property
    def num_computed(self) -> int:
        return self.progress.num_computed

    @property
    def num_tokens(self) -> int:
        return self.progress.num_tokens

    @property
    def num_output(self) -> int:
        return self.progress.num_tokens - self.num_prompt

    @property
    def draft_ids(self) -> tuple[int, ...]:
        return self.round.draft_ids if self.round is not None else ()

    @property
    def goal(self) -> int:
        """Known ids to compute before something is due: a draw, or, for a remote session between rounds, parking one id before."""
        return self.num_tokens - 1 if self.session is not None and self.round is None else self.num_tokens

    def restart(self, num_cached: int) -> None:
        """Begin at the first id again; the first `num_cached` are in the KV cache."""
        self.progress = Progress(num_cached, num_cached, len(self.token_ids))

    def advance(self, num_computed: int) -> None:
        """`num_computed` ids are in the KV cache now; known ids are those of `token_ids`."""
        self.progress = Progress(min(self.progress.num_cached, num_computed), num_computed, len(self.token_ids))


def resolve_max_tokens(num_prompt: int, max_tokens: int | None, limit: int) -> int:
    """Output tokens that a request may have when `limit` tokens of one request fit into the KV cache; None asks for all.

    The last token drawn is never fed, so `limit + 1 - num_prompt` fit. Raises ContextOverflow when the request can never fit.
    """
    asked = num_prompt + (max_tokens or 1) - 1
    if asked > limit:
        raise ContextOverflow(asked=asked, limit=limit)
    return max_tokens or limit + 1 - num_prompt
