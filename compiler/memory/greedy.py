"""Greedy planners: one order, one look at every buffer, the tightest gap among those already placed that live at the same time.

by size      largest first (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020)
by area      bytes x steps, so that what is in the way longest is placed first
by lifetime  longest first
by start     in the order of birth, as a run-time allocator would
by breadth   what lives at the busiest step first, largest first within a step (the same paper)
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence

from .buffer import Buffer

Offsets = dict[str, int]
Key = Callable[[Buffer], tuple[int, ...]]


def by_size(buffers: Sequence[Buffer]) -> Offsets:
    return best_fit(_sorted(buffers, lambda b: ()))


def by_area(buffers: Sequence[Buffer]) -> Offsets:
    return best_fit(_sorted(buffers, lambda b: (-b.extent * (b.upper - b.lower),)))


def by_lifetime(buffers: Sequence[Buffer]) -> Offsets:
    return best_fit(_sorted(buffers, lambda b: (b.lower - b.upper,)))


def by_start(buffers: Sequence[Buffer]) -> Offsets:
    return best_fit(_sorted(buffers, lambda b: (b.lower,)))


def by_breadth(buffers: Sequence[Buffer]) -> Offsets:
    """Steps by the bytes live there, most first; of each the buffers not placed yet, largest first."""
    busiest = _busiest(buffers)
    return best_fit(_sorted(buffers, lambda b: (-busiest[b.id],)))


ORDERS: Mapping[str, Callable[[Sequence[Buffer]], Offsets]] = {
    "size": by_size,
    "area": by_area,
    "lifetime": by_lifetime,
    "start": by_start,
    "breadth": by_breadth,
}


def best_fit(order: Sequence[Buffer]) -> Offsets:
    """Place buffers one by one, each in the smallest gap that holds it, or else on top; of equal gaps the lowest. O(n^2)."""
    offsets: Offsets = {}
    placed: list[tuple[int, int, int, int]] = []  # start, end, lower, upper; by start
    for buffer in order:
        extent, alignment = buffer.extent, buffer.alignment
        best, gap, top = -1, -1, 0
        for start, end, lower, upper in placed:
            if lower < buffer.upper and buffer.lower < upper:
                at = -(-top // alignment) * alignment
                if start - at >= extent and (gap < 0 or start - at < gap):
                    best, gap = at, start - at
                if end > top:
                    top = end
        offset = best if best >= 0 else -(-top // alignment) * alignment
        offsets[buffer.id] = offset
        insort(placed, (offset, offset + extent, buffer.lower, buffer.upper))
    return offsets


def first_fit(order: Sequence[Buffer]) -> Offsets:
    """As best_fit, but each at the lowest address that holds it."""
    offsets: Offsets = {}
    placed: list[tuple[int, int, int, int]] = []
    for buffer in order:
        top = 0
        for start, end, lower, upper in placed:
            if lower < buffer.upper and buffer.lower < upper:
                if start - top >= buffer.extent:
                    break
                if end > top:
                    top = -(-end // buffer.alignment) * buffer.alignment
        offsets[buffer.id] = top
        insort(placed, (top, top + buffer.extent, buffer.lower, buffer.upper))
    return offsets


def _sorted(buffers: Sequence[Buffer], key: Key) -> list[Buffer]:
    """By `key`, then largest first, then the earlier; ids decide between twins only, so that names change no plan."""
    return sorted(buffers, key=lambda b: (*key(b), -b.extent, b.lower, b.upper, b.alignment, b.size, b.id))


def _busiest(buffers: Sequence[Buffer]) -> dict[str, int]:
    """Of every buffer the most bytes live at any step of its life."""
    changes = sorted([(b.upper, -b.extent, b.id) for b in buffers] + [(b.lower, b.extent, b.id) for b in buffers])
    most = dict.fromkeys((b.id for b in buffers), 0)
    live: set[str] = set()
    total = 0
    for _, change, id in changes:
        total += change
        if change < 0:
            live.discard(id)
        else:
            live.add(id)
            for other in live:
                most[other] = max(most[other], total)
    return most
