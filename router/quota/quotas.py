"""Who may still use how much of the cloud: the user, the tenant, the model and the money must all admit a request.

view      what is left, for a decision
reserve   prompt and answer, before dispatch: from all levels or from none
settle    what was used, once; drafts that the cloud rejected go to a bucket of their own
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from ..policy.tables import QuotaPolicy
from .account import ABSURD, Account, Hold, Use, believed
from .allowance import AllowanceBook, InvalidAllowance, Receipt
from .bucket import MICRO, NANO, Level, Limit, nanoseconds, view_of
from .ledger import Ledger, kind_of
from .store import MemoryStore, QuotaStore, QuotaStoreFailed
from .view import QuotaView

T = TypeVar("T")
MAX_BUCKETS = 10_000
RECEIPT_S = 90 * 86_400.0  # how long after a grant's end its receipts are taken, and remembered
TOKEN_LEVELS = ("user", "tenant", "model")
_log = logging.getLogger("hybrid.quota")


class Quotas:
    """Thread-safe, and safe between processes when the store is. Time is the caller's: of a clock that outlives the process, when the
    store does or there is an allowance."""

    def __init__(
        self,
        policy: QuotaPolicy,
        store: QuotaStore | None = None,
        *,
        allowance: AllowanceBook | None = None,
        max_buckets: int = MAX_BUCKETS,
        new_name: Callable[[], str],
    ) -> None:
        """`new_name` names reservations: it never gives a name twice, in no process that shares the store."""
        self.policy = policy
        self._store = store or MemoryStore()
        self._allowance = allowance
        self._most = max_buckets
        self._new_name = new_name
        self._limits = limits_of(policy)
        self._loose: dict[str, Hold] = {}  # open ones that no ledger knows
        self._late: list[Callable[[Ledger], None]] = []  # what could not be written yet
        self._receipted = -1  # tokens of the allowance that the ledger has been told of; -1: not known
        self._lock = threading.Lock()  # of these three

    def change(self, policy: QuotaPolicy) -> None:
        """Limits from now on. What was used stays used; a level that was not limited before begins full."""
        self.policy, self._limits = policy, limits_of(policy)

    def view(self, account: Account, now: float) -> QuotaView:
        """All levels. When the store fails: no limit, none left, or the allowance's rest, as the policy says."""
        limits = self._limits
        levels = [level for level in (*TOKEN_LEVELS, "budget") if level in limits]
        try:
            views = self._transact(lambda ledger: self._views(ledger, account, levels, limits, now))
        except QuotaStoreFailed:
            return self.view_without_store(account, now)
        return replace(views[0], above=tuple(views[1:])) if views else QuotaView()

    def view_without_store(self, account: Account, now: float) -> QuotaView:
        if self.policy.on_store_failure == "admit":
            return QuotaView()
        left = self._allowance_left(account, now)
        return QuotaView(left, left, 0.0, level="store")

    def rejected(self, account: Account, now: float) -> QuotaView:
        """How many more drafted tokens of this user may be rejected before the device has to stop drafting."""
        limits = self._limits
        if "rejected" not in limits:
            return QuotaView(level="rejected")
        try:
            return self._transact(lambda ledger: self._views(ledger, account, ["rejected"], limits, now))[0]
        except QuotaStoreFailed:
            return self.rejected_without_store()

    def rejected_without_store(self) -> QuotaView:
        return QuotaView(level="rejected") if self.policy.on_store_failure == "admit" else QuotaView(0, 0, 0.0, level="store")

    def reserve(self, account: Account, use: Use, now: float) -> Hold | None:
        """Take `use` from every level, or nothing: None."""
        limits = self._limits
        name, amounts, lease = self._new_name(), _amounts(account, use, limits), round(self.policy.lease_s * NANO)
        if amounts is None:
            return None
        try:
            taken = self._transact(lambda ledger: ledger.reserve(name, amounts, limits, nanoseconds(now), lease, self._most))
            self._settle_allowance(now)
            return Hold(name, account, "ledger", use) if taken else None
        except QuotaStoreFailed:
            return self.reserve_without_store(account, use, now)

    def settle(self, hold: Hold, use: Use, now: float) -> None:
        """Charge what was used and give back the rest, once: a second call does nothing. What a failing store cannot take now is charged
        when it is back. A report that is absurd is not believed: what was reserved is charged, and a warning says so."""
        told, use = use, believed(hold, use)
        if use is not told:
            _log.warning(
                "%d tokens and %d rejected drafts were reported for a request that had reserved %d tokens: %d and %d are charged",
                *(told.tokens, told.rejected, hold.reserved.tokens, use.tokens, use.rejected),
            )
        if hold.source != "ledger":
            with self._lock:
                if self._loose.pop(hold.name, None) is None:
                    return
        if hold.source == "allowance":
            assert self._allowance is not None
            self._allowance.settle(hold.reserved.tokens, use.tokens)
            return
        limits = self._limits
        priced = replace(use, money=use.money or 0.0)  # a price that nobody knows is no reason to charge no tokens
        amounts, at = _amounts(hold.account, priced, limits) or {}, nanoseconds(now)
        junk = {hold.account.bucket("rejected"): use.rejected * MICRO} if "rejected" in limits and use.rejected else {}

        def change(ledger: Ledger) -> None:
            if hold.source == "free":
                ledger.charge(amounts | junk, limits, at, self._most)
            elif ledger.settle(hold.name, {kind_of(key): amount for key, amount in amounts.items()}, limits, at):
                ledger.charge(junk, limits, at, self._most)

        self._write(change)

    def settle_receipt(self, receipt: Receipt, now: float) -> int:
        """Charge what a device used of its offline allowance and has not been charged for yet: tokens, 0 for a receipt seen before.

        Raises InvalidAllowance for one that comes so late that it may have been forgotten, and for one that tells what cannot be;
        QuotaStoreFailed.
        """
        grant, at = receipt.grant, nanoseconds(now)
        if not 0 <= receipt.used <= ABSURD * max(1, grant.tokens):
            raise InvalidAllowance(f"a receipt tells of {receipt.used} tokens, its grant has {grant.tokens}")
        if now > grant.expires + RECEIPT_S:
            raise InvalidAllowance("this receipt comes too late: its grant expired long ago")
        account, limits = Account(grant.user, grant.tenant), self._limits
        keys = [account.bucket(level) for level in ("user", "tenant") if level in limits]

        def change(ledger: Ledger) -> int:
            fresh = ledger.settle_receipt(grant.id, receipt.used, at, nanoseconds(grant.expires + RECEIPT_S))
            ledger.charge(dict.fromkeys(keys, fresh * MICRO), limits, at, self._most)
            return fresh

        return self._transact(change)

    def _settle_allowance(self, now: float) -> None:
        """The store is there again: what was used without it is charged. Not while an answer still runs on the allowance."""
        book = self._allowance
        with self._lock:
            if book is None or book.used == self._receipted or any(hold.source == "allowance" for hold in self._loose.values()):
                return
            self._receipted = book.used
        try:
            self.settle_receipt(Receipt(book.grant, book.used), now)
        except (QuotaStoreFailed, InvalidAllowance):
            self._receipted = -1

    def reserve_without_store(self, account: Account, use: Use, now: float) -> Hold | None:
        """As the policy says: freely, from the offline allowance, or not at all."""
        source: Literal["allowance", "free"] = "free" if self.policy.on_store_failure == "admit" else "allowance"
        book = self._allowance
        if source == "allowance" and (self._allowance_left(account, now) < use.tokens or book is None or not book.spend(use.tokens, now)):
            return None
        hold = Hold(self._new_name(), account, source, use)
        with self._lock:
            self._loose[hold.name] = hold
        return hold

    def _allowance_left(self, account: Account, now: float) -> int:
        book = self._allowance
        usable = self.policy.on_store_failure == "allowance" and book is not None and book.covers(account.user, account.tenant)
        return book.left(now) if usable and book is not None else 0

    def _transact(self, change: Callable[[Ledger], T]) -> T:
        """`change`, after what an earlier failure left undone. Raises QuotaStoreFailed."""
        with self._lock:
            late, self._late = self._late, []

        def all_of(ledger: Ledger) -> T:
            for one in late:
                one(ledger)
            return change(ledger)

        try:
            return self._store.transact(all_of)
        except QuotaStoreFailed:
            with self._lock:
                self._late = late + self._late
            raise

    def _write(self, change: Callable[[Ledger], None]) -> None:
        try:
            self._transact(change)
        except QuotaStoreFailed:
            with self._lock:
                self._late.append(change)

    def _views(self, ledger: Ledger, account: Account, levels: Sequence[str], limits: Mapping[str, Limit], now: float) -> list[QuotaView]:
        at = nanoseconds(now)
        ledger.expire(limits, at)
        kept = {level: ledger.bucket(account.bucket(level), limits, at, self._most) for level in levels}
        return [view_of(ledger.levels[key], limits[level], level) for level, key in kept.items()]


def _amounts(account: Account, use: Use, limits: Mapping[str, Limit]) -> dict[str, int] | None:
    """Millionths per bucket; None when a limited budget meets a price that nobody knows."""
    amounts = {account.bucket(level): use.tokens * MICRO for level in TOKEN_LEVELS if level in limits}
    if "budget" in limits:
        if use.money is None:
            return None
        amounts[account.bucket("budget")] = math.ceil(use.money * MICRO)
    return amounts


def limits_of(policy: QuotaPolicy) -> dict[str, Limit]:
    """The levels that are limited."""
    pairs = {
        "user": (policy.capacity, policy.refill_per_s),
        "tenant": (policy.tenant_capacity, policy.tenant_refill_per_s),
        "model": (policy.model_capacity, policy.model_refill_per_s),
        "budget": (policy.budget, policy.budget_refill_per_s),
        "rejected": (policy.rejected_capacity, policy.rejected_refill_per_s),
    }
    return {level: Limit.of(capacity, rate) for level, (capacity, rate) in pairs.items() if capacity != "unlimited"}


def full_view(policy: QuotaPolicy) -> QuotaView:
    """All levels of somebody who has used nothing yet."""
    limits = limits_of(policy)
    views = [view_of(Level(limits[name].capacity, 0), limits[name], name) for name in (*TOKEN_LEVELS, "budget") if name in limits]
    return replace(views[0], above=tuple(views[1:])) if views else QuotaView()
