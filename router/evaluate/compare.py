"""Which prompts two policies send different ways, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .bootstrap import measure
from .figure import Figure, Interval, Undefined
from .replay import NO_OUTCOMES, NO_PRICES, NO_TIMES, Decided, Shares, shares


@dataclass(frozen=True, slots=True)
class Change:
    """One row that takes another route."""

    before: Decided
    after: Decided

    @property
    def id(self) -> str:
        return self.after.id

    @property
    def move(self) -> str:
        return f"{self.before.route} -> {self.after.route}"

    @property
    def cause(self) -> str:
        return f"{self.before.rule} -> {self.after.rule}"


@dataclass(frozen=True, slots=True)
class Compared:
    """`accuracy` and its interval: after minus before, on the same rows; undefined without outcomes."""

    rows: int
    changes: tuple[Change, ...]
    moves: Mapping[str, int]
    causes: Mapping[str, int]
    same_route_other_rule: int
    before: Shares
    after: Shares
    accuracy: Figure
    interval: Interval

    @property
    def changed(self) -> float:
        """Share of all rows."""
        return len(self.changes) / self.rows

    @property
    def cost(self) -> float | None:
        """Per row, after minus before."""
        return None if self.before.cost is None or self.after.cost is None else self.after.cost - self.before.cost

    @property
    def seconds(self) -> float | None:
        return None if self.before.seconds is None or self.after.seconds is None else self.after.seconds - self.before.seconds


def compare(before: Sequence[Decided], after: Sequence[Decided], *, seed: int = 0) -> Compared:
    """Of equal rows in equal order, at least one."""
    pairs = [Change(one, other) for one, other in zip(before, after, strict=True)]
    changes = tuple(pair for pair in pairs if pair.before.route != pair.after.route)
    accuracy, interval = _accuracy(pairs, seed)
    return Compared(
        rows=len(pairs),
        changes=changes,
        moves=dict(Counter(change.move for change in changes).most_common()),
        causes=dict(Counter(change.cause for change in changes).most_common()),
        same_route_other_rule=sum(pair.before.rule != pair.after.rule for pair in pairs)
        - sum(c.before.rule != c.after.rule for c in changes),
        before=shares(before),
        after=shares(after),
        accuracy=accuracy,
        interval=interval,
    )


def _accuracy(pairs: Sequence[Change], seed: int) -> tuple[Figure, Interval]:
    known = [
        (pair.after.group, one, other)
        for pair in pairs
        if (one := pair.before.quality) is not None and (other := pair.after.quality) is not None
    ]
    if not known:
        return Undefined(NO_OUTCOMES), Undefined(NO_OUTCOMES)
    gain = np.array([other - one for _, one, other in known])
    found = measure([group for group, _, _ in known], lambda weights: {"gain": weights @ gain / weights.sum(axis=1)}, seed=seed)
    return found.value["gain"], found.interval("gain")


def figures_of(found: Compared) -> dict[str, Figure]:
    """What the gates of a comparison may name; shares and costs without a suffix are those after."""
    return {
        "changed": found.changed,
        "cloud_share": found.after.cloud_share,
        "cloud_share_change": found.after.cloud_share - found.before.cloud_share,
        "refuse_share": found.after.route.get("refuse", 0.0),
        "private_share": 1.0 - found.after.privacy.get("public", 0.0),
        "cost_change": Undefined(NO_PRICES) if found.cost is None else found.cost,
        "seconds_change": Undefined(NO_TIMES) if found.seconds is None else found.seconds,
        "accuracy_change": found.accuracy,
    }
