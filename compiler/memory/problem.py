"""What a planner by search looks at: buffers as numbers, and only the steps where something can go wrong.

Two buffers meet if they share a step, and a step can be left out when another one has all its buffers and perhaps more: of a run of births
and then deaths, only the step between is kept. Such a step is called a section. Bytes are counted in the largest unit that suits them all.

    step      0 1 2 3 4 5 6          section   0   1
    a         |=======|              a         |===|
    b           |=|                  b         |
    c               |=====|     ►    c             |
    d           |=========|          d         |===|
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from .buffer import Buffer


@dataclass(frozen=True, slots=True)
class Problem:
    """Buffer i covers the sections [first[i], last[i]), sorted by size, largest first, then by life; ids decide between twins only."""

    buffers: tuple[Buffer, ...]
    unit: int  # bytes
    size: tuple[int, ...]  # of each buffer, in units; alignment included
    alignment: tuple[int, ...]  # in units
    first: tuple[int, ...]
    last: tuple[int, ...]
    sections: tuple[tuple[int, ...], ...]  # the buffers of each section
    overlaps: tuple[tuple[int, ...], ...]  # of each buffer: those that it shares a section with
    bound: int  # units in the fullest section


def make_problem(buffers: Sequence[Buffer], all_steps: bool = False) -> Problem:
    """`all_steps` keeps a section for every step at which something is born: slower, and no different."""
    chosen = tuple(sorted(buffers, key=lambda b: (-b.extent, b.lower, b.upper, b.alignment, b.size, b.id)))
    unit = _unit(chosen)
    steps = _births(chosen) if all_steps else _sections(chosen)
    first, last = _ranges(chosen, steps)
    live: list[list[int]] = [[] for _ in steps]
    for i in range(len(chosen)):
        for s in range(first[i], last[i]):
            live[s].append(i)
    sections = tuple(tuple(section) for section in live)
    overlaps = tuple(tuple(sorted(set().union(*sections[first[i] : last[i]]) - {i})) for i in range(len(chosen)))
    size = tuple(b.extent // unit for b in chosen)
    bound = max((sum(size[i] for i in section) for section in sections), default=0)
    return Problem(chosen, unit, size, tuple(max(b.alignment // unit, 1) for b in chosen), first, last, sections, overlaps, bound)


def _unit(buffers: Sequence[Buffer]) -> int:
    """The largest unit of which every extent is a multiple, and every alignment a multiple or a divisor: so is then every offset."""
    unit = gcd(*(b.extent for b in buffers)) or 1
    while odd := next((b.alignment for b in buffers if unit % b.alignment and b.alignment % unit), 0):
        unit = gcd(unit, odd)
    return unit


def _births(buffers: Sequence[Buffer]) -> list[int]:
    return sorted({b.lower for b in buffers})


def _sections(buffers: Sequence[Buffer]) -> list[int]:
    """The last birth before every death: there, nothing is missing that is live at the steps around it."""
    births, deaths = _births(buffers), sorted({b.upper for b in buffers})
    kept: list[int] = []
    at = 0
    for death in deaths:
        while at < len(births) and births[at] < death:
            at += 1
        if not kept or births[at - 1] > kept[-1]:
            kept.append(births[at - 1])
    return kept


def _ranges(buffers: Sequence[Buffer], steps: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For each buffer the first section it lives in, and the first after it that it does not."""
    return tuple(bisect_left(steps, b.lower) for b in buffers), tuple(bisect_left(steps, b.upper) for b in buffers)
