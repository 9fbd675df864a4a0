"""A bucket that fills at a steady rate, in whole numbers, so that nothing drifts: what was charged is what is missing, to the millionth.

    level, capacity   millionths of a token (or of a unit of money)
    rate              millionths per second
    time              nanoseconds; rate x nanoseconds that make no whole millionth yet are carried in `rest`

Time is the caller's, in seconds of any clock; one that runs backward refills nothing.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

import msgspec

from .view import QuotaView

MICRO, NANO = 10**6, 10**9


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a bucket holds and how fast it fills. A capacity of 0 lets nothing through."""

    capacity: int  # millionths
    rate: int  # millionths per second

    @staticmethod
    def of(capacity: float, refill_per_s: float) -> Limit:
        return Limit(round(capacity * MICRO), round(refill_per_s * MICRO))


class Level(msgspec.Struct):
    """What a bucket holds, as of `at`; below 0 when an answer used more than it had reserved."""

    level: int
    at: int  # nanoseconds
    rest: int = 0  # 0 .. NANO - 1

    def refill(self, limit: Limit, at: int) -> None:
        if at <= self.at:
            return
        gained, self.rest = divmod((at - self.at) * limit.rate + self.rest, NANO)
        self.at = at
        self.give(gained, limit)

    def give(self, amount: int, limit: Limit) -> None:
        """Never more than it holds."""
        self.level += amount
        if self.level >= limit.capacity:
            self.level, self.rest = limit.capacity, 0


def nanoseconds(seconds: float) -> int:
    return math.floor(seconds * NANO)


def view_of(level: Level, limit: Limit, name: str = "user") -> QuotaView:
    return QuotaView(available=_shown(level.level), capacity=_shown(limit.capacity), refill_per_s=_shown(limit.rate), level=name)


def _shown(amount: int) -> float:
    """In tokens, never rounded up to a token that is not there."""
    whole, rest = divmod(amount, MICRO)
    return min(whole + rest / MICRO, math.nextafter(whole + 1, whole))


@dataclass(frozen=True, eq=False, slots=True)
class Reservation:
    """Tokens taken from one bucket. Settle it once, whatever became of what they were for."""

    tokens: int


class TokenBucket:
    """One bucket by itself. Thread-safe: it is read and lowered under one lock, so parallel requests never admit more than it held."""

    def __init__(self, capacity: int, refill_per_s: float, now: float) -> None:
        self._limit = Limit.of(capacity, refill_per_s)
        self._level = Level(self._limit.capacity, nanoseconds(now))
        self._open: set[Reservation] = set()
        self._lock = threading.Lock()

    def view(self, now: float) -> QuotaView:
        with self._lock:
            self._level.refill(self._limit, nanoseconds(now))
            return view_of(self._level, self._limit)

    def reserve(self, tokens: int, now: float) -> Reservation | None:
        """Take `tokens`, or nothing: None when they are not there. More than the capacity is never there; see `QuotaView.wait_s`."""
        assert tokens >= 0
        with self._lock:
            self._level.refill(self._limit, nanoseconds(now))
            if tokens * MICRO > self._level.level:
                return None
            self._level.level -= tokens * MICRO
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
            self._level.refill(self._limit, nanoseconds(now))
            self._level.give((reservation.tokens - used) * MICRO, self._limit)
