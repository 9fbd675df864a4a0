"""All buckets and all open reservations of a quota, as plain data: what a store keeps, and the four things that can happen to it.

    reserve ──► held ── settle ──► charged what was used, once
                  └── its lease ran out ──► given back; whoever settles later is still charged, once, for up to GRACE

A reservation takes from all its buckets or from none. Nothing here locks, reads a clock or draws: see `store.py` and `quotas.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import msgspec

from .bucket import NANO, Level, Limit

GRACE = 24 * 3600 * NANO  # how long an answer whose lease ran out can still be charged
OVERFLOW = "overflow"
LOOK_AT = 8  # buckets that a new one's coming looks at, the longest unused first, for one to forget


class Held(msgspec.Struct):
    """An open reservation: bucket -> millionths taken, and until when."""

    taken: dict[str, int]
    until: int  # nanoseconds
    given_back: bool = False  # its lease ran out: nothing is taken any more, and what was used is charged when it comes


class Ledger(msgspec.Struct):
    """Keys are LEVEL:NAME; the limit of a bucket is that of its level."""

    levels: dict[str, Level] = {}
    held: dict[str, Held] = {}  # by reservation
    receipts: dict[str, tuple[int, int]] = {}  # offline allowance -> tokens charged of it, and until when that is remembered
    at: int = 0  # the latest time seen, nanoseconds: no clock takes it back

    def bucket(self, key: str, limits: Mapping[str, Limit], at: int, most: int) -> str:
        """The key under which a bucket is kept, filled up to now; full when it is new. Beyond `most` of them, one that is full again is
        forgotten, which forgets nothing; if none is, new ones share an overflow bucket: a flood of names gains nothing, and nobody's
        debt is forgotten."""
        self.at = at = max(self.at, at)
        kind = kind_of(key)
        if key not in self.levels and len(self.levels) >= most and not self._forget_one(limits, at):
            key = f"{kind}:{OVERFLOW}"
        found = self.levels.pop(key) if key in self.levels else Level(limits[kind].capacity, at)
        found.refill(limits[kind], at)
        self.levels[key] = found  # last, being the last used
        return key

    def reserve(self, name: str, amounts: Mapping[str, int], limits: Mapping[str, Limit], at: int, lease: int, most: int) -> bool:
        """Take `amounts` (bucket -> millionths), all or nothing, for `lease` nanoseconds."""
        self.expire(limits, at)
        taken = {self.bucket(key, limits, at, most): amount for key, amount in amounts.items()}
        if any(amount > self.levels[key].level for key, amount in taken.items()):
            return False
        for key, amount in taken.items():
            self.levels[key].level -= amount
        self.held[name] = Held(taken, self.at + lease)
        return True

    def settle(self, name: str, used: Mapping[str, int], limits: Mapping[str, Limit], at: int) -> bool:
        """Charge `used` (level -> millionths), give the rest back. False, and nothing is done, for what was settled already."""
        held = self.held.pop(name, None)
        if held is None:
            return False
        self.at = at = max(self.at, at)
        for key, taken in held.taken.items():
            kind = kind_of(key)
            if kind in limits:  # else the policy no longer knows this level
                key = self.bucket(key, limits, at, len(self.levels) + 1)
                self.levels[key].give(taken - used.get(kind, 0), limits[kind])
        return True

    def charge(self, amounts: Mapping[str, int], limits: Mapping[str, Limit], at: int, most: int) -> None:
        """Take without asking: what was used is used, even below 0."""
        for key, amount in amounts.items():
            self.levels[self.bucket(key, limits, at, most)].level -= amount

    def settle_receipt(self, grant: str, used: int, at: int, until: int) -> int:
        """How much of `used`, all that was ever used of a grant, has not been charged yet; now it is."""
        self.at = at = max(self.at, at)
        self.receipts = {name: settled for name, settled in self.receipts.items() if settled[1] > at}
        before = self.receipts.get(grant, (0, 0))[0]
        self.receipts[grant] = max(before, used), until
        return max(0, used - before)

    def expire(self, limits: Mapping[str, Limit], at: int) -> None:
        """Give back what was reserved by those who never came to settle."""
        for name, held in [item for item in self.held.items() if item[1].until <= max(self.at, at)]:
            if held.given_back:
                del self.held[name]
                continue
            self.settle(name, {}, limits, at)
            self.held[name] = Held(dict.fromkeys(held.taken, 0), held.until + GRACE, given_back=True)

    def _forget_one(self, limits: Mapping[str, Limit], at: int) -> bool:
        held = {key for one in self.held.values() for key in one.taken}
        for key, level in tuple(islice(self.levels.items(), LOOK_AT)):
            limit = limits.get(kind_of(key))
            if limit is not None:
                level.refill(limit, at)
            if limit is None or (level.level >= limit.capacity and key not in held):
                del self.levels[key]
                return True
        return False


def kind_of(key: str) -> str:
    return key.partition(":")[0]
