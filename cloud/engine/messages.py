"""The only things that cross between front-end and engine: frozen, encodable messages."""

from __future__ import annotations

from typing import Literal

import msgspec

from ...shared_protocol.sampling import SamplingParams

FinishReason = Literal["stop", "length", "abort", "error"]


class Add(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A new request. `remote`: its drafts come from a device; the engine computes all but the last prompt token, then parks it."""

    request_id: str
    prompt_ids: tuple[int, ...]
    params: SamplingParams
    seed: int  # always set: the front-end draws one for unseeded requests
    cache_salt: str = ""
    remote: bool = False


class Abort(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """End a request in whatever state it is. Unknown and finished ids are ignored."""

    request_id: str


class Draft(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device's window for a parked remote request: `ids` follow the first `base_len` tokens of the sequence."""

    request_id: str
    round: int
    base_len: int
    prefix_hash: bytes  # first 16 bytes of SHA-256 over the assumed prefix, ids as LE u32
    ids: tuple[int, ...]


class TokenLogprobs(msgspec.Struct, frozen=True):
    """Raw log-probability of one token, and the `top` (id, log-probability) pairs, best first."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


class Verdict(msgspec.Struct, frozen=True, tag="verdict"):
    """The target's answer to a round. `token` is None when a finish lies inside the accepted run."""

    round: int
    n_accepted: int
    token: int | None
    committed_len: int


class Stale(msgspec.Struct, frozen=True, tag="stale"):
    """The device's prefix differs: `ids` are the committed tokens from the first difference, `start`, on."""

    round: int
    start: int
    ids: tuple[int, ...]
    committed_len: int


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """A protocol error of the device; the round was not taken. `code`: round_order, round_conflict, base_len, prefix_hash or token_id."""

    round: int
    code: str
    message: str


Answer = Verdict | Stale | Refused


class StepOutput(msgspec.Struct, frozen=True):
    """What one step did for one request. Exactly one output of a request has a `finish_reason`, and it is the last."""

    request_id: str
    new_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprobs, ...] = ()  # one per new id when asked for
    finish_reason: FinishReason | None = None
    stop_token_id: int | None = None  # the stop id that ended it (EOS included); it is the last of new_ids
    num_cached: int = 0  # prompt tokens that came from the prefix cache
    parked: bool = False  # a remote request has its prompt computed and waits for a draft
    answer: Answer | None = None  # of a remote request: the answer to its draft
    error: str | None = None  # with finish_reason "error"; no prompt text


class EngineStats(msgspec.Struct, frozen=True):
    """`total` (without the null block) = `free` (no content) + `cached` (content, no reference) + `used`."""

    running: int
    waiting: int
    parked: int
    total: int
    free: int
    cached: int
    used: int
    num_preemptions: int
    prefix_queries: int  # tokens looked up
    prefix_hits: int  # tokens found
    steps: int
    healthy: bool = True
