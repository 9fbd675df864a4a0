"""What a target makes of a draft under shared noise: it emits its own draws and keeps the drafts that equal them.

position      base     base+1    base+2    base+3
drafted       d0       d1        d2
drawn         t0       t1        t2        t3        t_i from the target's logits after d0 .. d(i-1), same noise at that position
accepted      d0 == t0, d1 == t1, d2 != t2  ->  n_accepted 2, token t2

The emitted text t0 t1 t2 is what plain sampling would have emitted, whatever was drafted (Daliri, Musco, Suresh, arXiv 2408.07978).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

PREFIX_HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class Accepted:
    """`n_accepted` drafts stand; `token` follows them. `token` is None when the sequence ends inside the accepted run."""

    n_accepted: int
    token: int | None
    finish_reason: Literal["stop", "length"] | None = None
    stop_token_id: int | None = None  # the end token, which is the last one emitted


def verify(draft_ids: Sequence[int], draws: Sequence[int]) -> Accepted:
    """Compare k drafts with the target's 1 + k draws; the draw after the last accepted draft is emitted too."""
    assert len(draws) == len(draft_ids) + 1
    n = 0
    while n < len(draft_ids) and draft_ids[n] == draws[n]:
        n += 1
    return Accepted(n, draws[n])


def cut(accepted: Accepted, draft_ids: Sequence[int], *, end_ids: Collection[int], room: int) -> Accepted:
    """End the sequence where plain decoding would have: at the first of `end_ids`, which is kept, or after `room` >= 1 more tokens.

    An end token in the last place that fits is a "stop".
    """
    assert room >= 1 and accepted.token is not None
    emitted = [*draft_ids[: accepted.n_accepted], accepted.token]
    for index, token in enumerate(emitted[:room]):
        if token in end_ids:
            return _ended(accepted, index, token, "stop", token)
    if len(emitted) >= room:
        return _ended(accepted, room - 1, emitted[room - 1], "length", None)
    return accepted


def _ended(accepted: Accepted, last: int, token: int, reason: Literal["stop", "length"], stop_token_id: int | None) -> Accepted:
    if last < accepted.n_accepted:  # the last token emitted is itself a draft
        return Accepted(last + 1, None, reason, stop_token_id)
    return Accepted(accepted.n_accepted, token, reason, stop_token_id)


class PrefixHash:
    """First 16 bytes of SHA-256 over ids as little-endian u32, extended as the sequence grows."""

    def __init__(self, ids: Iterable[int] = ()) -> None:
        self._state = hashlib.sha256()
        self.length = 0
        self.extend(ids)

    def extend(self, ids: Iterable[int]) -> None:
        ids = list(ids)
        self._state.update(struct.pack(f"<{len(ids)}I", *ids))
        self.length += len(ids)

    def digest(self) -> bytes:
        return self._state.digest()[:PREFIX_HASH_BYTES]


def prefix_hash(ids: Iterable[int]) -> bytes:
    return PrefixHash(ids).digest()
