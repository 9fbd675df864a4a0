"""Hill climbing over orders: move what lies highest to the front of something beneath it, and keep the order if the plan is no higher.

A plan is an order of buffers, each placed at the lowest address that holds it. What ends at the top got there because others were placed
before it; so one of the buffers that end there goes before one of those that live while it does. Counts iterations, never seconds.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from .bound import lower_bound
from .buffer import Buffer
from .greedy import Offsets, by_size, first_fit
from .plan import height

ITERATIONS = 400


def hill_climb(buffers: Sequence[Buffer], start: Mapping[str, int] | None = None, iterations: int = ITERATIONS, seed: int = 0) -> Offsets:
    """Climb from the plan `start` (greedy by size when left out). The same seed gives the same plan; stops at the bound."""
    start = start if start is not None else by_size(buffers)
    order = sorted(buffers, key=lambda b: (start[b.id], b.lower, b.upper, -b.extent, b.alignment, b.size, b.id))
    offsets = first_fit(order)
    top, bound = height(order, offsets), lower_bound(buffers)
    best, least = (dict(start), height(buffers, start)) if height(buffers, start) < top else (offsets, top)
    chance = random.Random(seed)
    for _ in range(iterations):
        if least == bound:
            break
        tried = _moved(order, offsets, top, chance)
        found = first_fit(tried)
        reached = height(tried, found)
        if reached <= top:
            order, offsets, top = tried, found, reached
            if top < least:
                best, least = offsets, top
    return best


def _moved(order: Sequence[Buffer], offsets: Mapping[str, int], top: int, chance: random.Random) -> list[Buffer]:
    """The order with one of the highest buffers moved before one that is placed before it and lives with it."""
    high = chance.choice([at for at, b in enumerate(order) if offsets[b.id] + b.extent == top])
    lifted = order[high]
    before = [at for at in range(high) if order[at].lower < lifted.upper and lifted.lower < order[at].upper]
    to = chance.choice(before) if before else 0
    return [*order[:to], lifted, *order[to:high], *order[high + 1 :]]
