"""How much one key may ask of `/v1/speculate`, over all its connections."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ....router.quota import Reservation, TokenBucket
from ....shared_protocol.errors import QuotaExceeded


@dataclass(frozen=True, slots=True)
class SpeculateLimits:
    lease_s: int = 30  # a session (or a connection without one) that is idle for longer is closed
    max_lease_s: int = 300  # the longest that a device may ask for
    ticket_s: int = 600  # how long a ticket may be used
    sessions: int = 16  # open at once
    frames_per_s: float = 500.0
    frames_burst: int = 2000
    wasted_per_s: float = 512.0  # drafted tokens that were verified and rejected
    wasted_burst: int = 16384


class KeyMeter:
    """What one key uses. Time is the caller's."""

    def __init__(self, limits: SpeculateLimits, now: float) -> None:
        self.sessions = 0
        self._limits = limits
        self._frames = TokenBucket(limits.frames_burst, limits.frames_per_s, now)
        self._wasted = TokenBucket(limits.wasted_burst, limits.wasted_per_s, now)

    def take_frame(self, now: float) -> None:
        taken = self._frames.reserve(1, now)
        if taken is None:
            raise QuotaExceeded("this key sends too many frames", retry_after_s=self._frames.view(now).wait_s(1))
        self._frames.settle(taken, 1, now)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold one of the sessions that may be open at once."""
        if self.sessions >= self._limits.sessions:
            raise QuotaExceeded(f"this key has {self.sessions} sessions open, the most it may have", hint="close one first")
        self.sessions += 1
        try:
            yield
        finally:
            self.sessions -= 1

    def reserve_drafts(self, count: int, now: float) -> Reservation:
        """Take what would be wasted if all were rejected; settle with what was."""
        reservation = self._wasted.reserve(count, now)
        if reservation is None:
            wait = self._wasted.view(now).wait_s(count)
            raise QuotaExceeded(
                "too many of this key's drafted tokens were rejected",
                hint="draft fewer, or take plain steps",
                retry_after_s=None if wait is None else math.ceil(wait),
            )
        return reservation

    def settle_drafts(self, reservation: Reservation, wasted: int, now: float) -> None:
        self._wasted.settle(reservation, wasted, now)
