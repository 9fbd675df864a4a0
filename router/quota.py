"""How many cloud tokens a user may still use: a bucket that fills at a steady rate, reserved from before dispatch, settled after.

Time is the caller's, in seconds of any clock that never runs backward; a clock that does refills nothing.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass

from .policy import QuotaPolicy


@dataclass(frozen=True, slots=True)
class QuotaView:
    """A bucket as it was at one moment, for a decision. The default knows no limit."""

    available: float = math.inf  # tokens, negative when an answer used more than it had reserved
    capacity: float = math.inf  # tokens
    refill_per_s: float = 0.0

    def admits(self, tokens: float) -> bool:
        return tokens <= self.available

    def wait_s(self, tokens: float) -> float | None:
        """Seconds until `tokens` would be there if nobody else took any; None: never."""
        missing = tokens - self.available
        if missing <= 0:
            return 0.0
        if tokens > self.capacity or self.refill_per_s <= 0:
            return None
        return missing / self.refill_per_s


@dataclass(frozen=True, eq=False, slots=True)
class Reservation:
    """Tokens taken from one bucket for one request. Settle it once, whatever became of the request."""

    tokens: int


class TokenBucket:
    """Thread-safe. The level is read and lowered under one lock, so parallel requests never admit more than it held."""

    def __init__(self, capacity: int, refill_per_s: float, now: float) -> None:
        self.capacity = capacity
        self.refill_per_s = refill_per_s
        self._level = float(capacity)
        self._time = now
        self._open: set[Reservation] = set()
        self._lock = threading.Lock()

    def view(self, now: float) -> QuotaView:
        with self._lock:
            self._refill(now)
            return QuotaView(available=self._level, capacity=self.capacity, refill_per_s=self.refill_per_s)

    def reserve(self, tokens: int, now: float) -> Reservation | None:
        """Take `tokens`, or nothing: None when they are not there. More than the capacity is never there; see `QuotaView.wait_s`."""
        assert tokens >= 0
        with self._lock:
            self._refill(now)
            if tokens > self._level:
                return None
            self._level -= tokens
            reservation = Reservation(tokens)
            self._open.add(reservation)
            return reservation

    def settle(self, reservation: Reservation, used: int, now: float) -> None:
        """Charge what was used and give the rest back; use beyond the reservation is charged too. A second call does nothing."""
        assert used >= 0
        with self._lock:
            if reservation not in self._open:
                return
            self._open.remove(reservation)
            self._refill(now)
            self._level = min(float(self.capacity), self._level + reservation.tokens - used)

    @property
    def idle(self) -> bool:
        """Full as of the last call, with nothing reserved: forgetting it forgets nothing."""
        return not self._open and self._level >= self.capacity

    def _refill(self, now: float) -> None:
        if now > self._time:
            self._level = min(float(self.capacity), self._level + (now - self._time) * self.refill_per_s)
            self._time = now


class Quotas:
    """One bucket per user, at most `max_users` of them. When there are more, buckets that are full again are forgotten.

    If none is full, new users share one overflow bucket: a flood of names gains nothing, and nobody's debt is forgotten.
    """

    def __init__(self, policy: QuotaPolicy, *, max_users: int = 10_000) -> None:
        self.policy = policy
        self.max_users = max_users
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self._overflow: TokenBucket | None = None
        self._lock = threading.Lock()

    def bucket(self, user: str, now: float) -> TokenBucket:
        with self._lock:
            found = self._buckets.get(user)
            if found is not None:
                self._buckets.move_to_end(user)
                return found
            if len(self._buckets) >= self.max_users and not self._forget_one(now):
                self._overflow = self._overflow or self._new(now)
                return self._overflow
            self._buckets[user] = made = self._new(now)
            return made

    def view(self, user: str, now: float) -> QuotaView:
        return self.bucket(user, now).view(now)

    def _new(self, now: float) -> TokenBucket:
        return TokenBucket(self.policy.capacity, self.policy.refill_per_s, now)

    def _forget_one(self, now: float) -> bool:
        for user, bucket in self._buckets.items():  # least recently used first
            bucket.view(now)
            if bucket.idle:
                del self._buckets[user]
                return True
        return False
