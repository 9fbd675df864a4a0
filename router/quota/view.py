"""The buckets that a request must pass, as they were at one moment: what a decision sees of a quota."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuotaView:
    """One level, and those `above` it, which must all admit. The default knows no limit.

    `level`: user, tenant, model, budget (in money), rejected; or `cloud`, when the cloud itself asks to wait, and `store`, when what is
    left is not known.
    """

    available: float = math.inf  # tokens, or money; negative when an answer used more than it had reserved
    capacity: float = math.inf
    refill_per_s: float = 0.0
    level: str = "user"
    above: tuple[QuotaView, ...] = ()
    told_s: float | None = None  # how long to wait, where somebody else has said so

    def admits(self, tokens: float, money: float | None = 0.0) -> bool:
        """Whether all levels hold as much. `money`: what it costs; None when nobody knows, which no limited budget admits."""
        return self.blocking(tokens, money) is None

    def wait_s(self, tokens: float, money: float | None = 0.0) -> float | None:
        """Seconds until all levels would hold as much if nobody else took any; None: never, or not known."""
        blocking = self.blocking(tokens, money)
        return 0.0 if blocking is None else blocking._own_wait_s(tokens, money)

    def can_ever_admit(self, tokens: float, money: float | None = 0.0) -> bool:
        """Whether full buckets would hold as much: if not, no waiting helps. A store that is away and a busy cloud may come back."""
        asked = ((view, view._asked(tokens, money)) for view in self._levels())
        return all(view.level in ("cloud", "store") or (amount is not None and amount <= view.capacity) for view, amount in asked)

    @property
    def rule(self) -> str:
        """The policy's key that limits this level."""
        return {"user": "quota.capacity", "budget": "quota.budget", "cloud": "quota.cloud", "store": "quota.on_store_failure"}.get(
            self.level, f"quota.{self.level}_capacity"
        )

    def lack(self, tokens: float, money: float | None = 0.0) -> str:
        """A sentence for people: what is asked, what is left, how long it takes."""
        if self.level == "cloud":
            return "the cloud is busy and asks to wait" + (
                f" {math.ceil(self.told_s)} s" if self.told_s is not None and math.isfinite(self.told_s) else ""
            )
        if self.level == "store":
            return "what is left of the quota is not known: its store cannot be used"
        if self.level == "budget":
            asked = "of unknown price" if money is None else f"costs {money:.6g}"
            return f"a request {asked}, {max(0.0, self.available):.6g} left in the budget{self._when(tokens, money)}"
        of = "" if self.level == "user" else f" for this {self.level}"
        return f"{tokens:g} cloud tokens needed, {math.floor(max(0.0, self.available))} left{of}{self._when(tokens, money)}"

    def _when(self, tokens: float, money: float | None) -> str:
        asked, wait = self._asked(tokens, money), self._own_wait_s(tokens, money)
        if asked is not None and asked > self.capacity:
            return ", and the bucket never holds as many"
        return ", and nothing fills it" if wait is None or not math.isfinite(wait) else f", enough in {math.ceil(wait)} s"

    def blocking(self, tokens: float, money: float | None = 0.0) -> QuotaView | None:
        """The level that lacks it for the longest; None when all have it."""
        lacking = [view for view in self._levels() if not view._own_admits(tokens, money)]
        waits = [view._own_wait_s(tokens, money) for view in lacking]
        longest = [math.inf if wait is None else wait for wait in waits]
        return lacking[longest.index(max(longest))] if lacking else None

    def _levels(self) -> Iterator[QuotaView]:
        yield self
        for view in self.above:
            yield from view._levels()

    def _asked(self, tokens: float, money: float | None) -> float | None:
        return money if self.level == "budget" else tokens

    def _own_admits(self, tokens: float, money: float | None) -> bool:
        asked = self._asked(tokens, money)
        return self.available == math.inf if asked is None else asked <= self.available

    def _own_wait_s(self, tokens: float, money: float | None) -> float | None:
        asked = self._asked(tokens, money)
        if self.told_s is not None or self.level in ("cloud", "store"):
            return self.told_s
        if asked is None or asked > self.capacity or (asked > self.available and self.refill_per_s <= 0):
            return None
        return max(0.0, asked - self.available) / self.refill_per_s if asked > self.available else 0.0
