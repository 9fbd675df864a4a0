"""Buffers over several memories: the best first, and what moves least where that is full.

    SRAM   |kept|   pool: buffers share places over time   |        a plan each, verified together
    DRAM   |kept|   pool: what was spilled, and the rest          |
    pages  |        pool of fixed size: weights between prefetch and last use  |

Everything begins in the first arena it may lie in. Where the busiest step holds too much, a buffer moves on to its next arena: of those
that free enough alone, the one that moves the fewest bytes (size x reuse), else the one touched least a byte. In the end, what moves most
is brought back where room was left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm

from .arena import Arena, Wanted
from .bound import lower_bound
from .buffer import Buffer, by_id
from .errors import InvalidBuffers, MemoryTooSmall
from .plan import MemoryPlan
from .portfolio import plan
from .verifier import verify_arenas

TRIES = 6_000  # of the exact search, for one arena and one round of spilling


@dataclass(frozen=True, slots=True)
class Spilled:
    """A buffer that did not get its first arena."""

    id: str
    wanted: str
    got: str
    traffic: float  # bytes that it moves there


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """One arena: what is kept lies at its start, side by side; the pool follows."""

    arena: Arena
    kept: Mapping[str, int]  # offsets in the arena
    pool_start: int
    pool: MemoryPlan  # offsets in the pool

    @property
    def size(self) -> int:
        return self.pool_start + self.pool.size

    @property
    def bound(self) -> int:
        return self.pool_start + self.pool.bound

    @property
    def offsets(self) -> dict[str, int]:
        """Of everything in it, from the arena's start."""
        return {**self.kept, **{id: self.pool_start + offset for id, offset in self.pool.offsets.items()}}


@dataclass(frozen=True, slots=True)
class ArenaPlans:
    plans: Mapping[str, ArenaPlan]  # by arena, in the order given
    spilled: tuple[Spilled, ...]

    @property
    def places(self) -> dict[str, tuple[str, int]]:
        """Of every buffer its arena, and its offset there."""
        return {id: (name, offset) for name, found in self.plans.items() for id, offset in found.offsets.items()}


def plan_arenas(wanted: Sequence[Wanted], arenas: Sequence[Arena], tries: int = TRIES) -> ArenaPlans:
    """Give every buffer an arena and a place. Raises InvalidBuffers on unknown arenas or ids twice; MemoryTooSmall names what would fit."""
    by_id(w.buffer for w in wanted)
    known = {arena.name: arena for arena in arenas}
    for w in wanted:
        for name in w.arenas:
            if name not in known:
                raise InvalidBuffers(f"buffer {w.buffer.id} may lie in {name}; the arenas are {', '.join(known)}", ids=(w.buffer.id,))
    level = {w.buffer.id: 0 for w in wanted}  # how far down its list each buffer is
    plans: dict[str, ArenaPlan] = {}
    order = [arena.name for arena in arenas]
    while order:  # an arena that takes in what another one spilled is planned after it
        name = order.pop(0)
        plans[name] = _fill(known[name], wanted, level, tries)
        for w in wanted:
            target = w.arenas[level[w.buffer.id]]
            if target in plans and w.buffer.id not in plans[target].offsets and target not in order:
                order.append(target)
    where = {id: (name, offset) for name, found in plans.items() for id, offset in found.offsets.items()}
    verify_arenas(wanted, arenas, where)
    spilled = tuple(Spilled(w.buffer.id, w.arenas[0], w.arenas[level[w.buffer.id]], w.traffic) for w in wanted if level[w.buffer.id])
    return ArenaPlans({arena.name: plans[arena.name] for arena in arenas}, spilled)


@dataclass(frozen=True, slots=True)
class _Layout:
    """One arena before its pool is planned."""

    arena: Arena
    kept: Mapping[str, int]
    pool_start: int
    pool: tuple[Buffer, ...]

    @property
    def room(self) -> int:
        return self.arena.capacity - self.pool_start


def _fill(arena: Arena, wanted: Sequence[Wanted], level: dict[str, int], tries: int) -> ArenaPlan:
    """Plan one arena, moving buffers on until the rest fits, then bringing back what does fit."""
    moved: list[Wanted] = []
    while True:
        here = [w for w in wanted if w.arenas[level[w.buffer.id]] == arena.name]
        layout = _lay_out(arena, here)
        fits, excess, guilty = _try(layout, tries)
        if fits:
            break
        out = _choose(here, level, arena, excess, guilty)
        level[out.buffer.id] += 1
        moved.append(out)
    for w in sorted(moved, key=lambda w: (-w.traffic, w.buffer.id)):
        with_it = _lay_out(arena, [*here, w])
        if also := _try(with_it, tries // 10)[0]:
            level[w.buffer.id] = w.arenas.index(arena.name)
            here, layout, fits = [*here, w], with_it, also
    best = min(fits, plan(layout.pool, tries=tries), key=lambda made: made.size)
    return ArenaPlan(arena, layout.kept, layout.pool_start, best)


def _lay_out(arena: Arena, here: Sequence[Wanted]) -> _Layout:
    """What is kept goes first, largest alignment first, so that little is lost between."""
    aligned = {w.buffer.id: replace(w.buffer, alignment=lcm(w.buffer.alignment, arena.alignment)) for w in here}
    kept: dict[str, int] = {}
    end = 0
    for b in sorted((aligned[w.buffer.id] for w in here if w.kept), key=lambda b: (-b.alignment, -b.extent, b.id)):
        kept[b.id] = -(-end // b.alignment) * b.alignment
        end = kept[b.id] + b.extent
    pool = tuple(aligned[w.buffer.id] for w in here if not w.kept)
    step = lcm(*(b.alignment for b in pool))  # so that an aligned offset in the pool is one in the arena
    return _Layout(arena, kept, -(-end // step) * step, pool)


def _try(layout: _Layout, tries: int) -> tuple[MemoryPlan | None, int, set[str]]:
    """A plan that fits, or how many bytes too many there are and the buffers of which one must go.

    These are those live at the busiest step where even the bound is too large, else those that end too high.
    """
    room = layout.room
    if (bound := lower_bound(layout.pool)) > room:
        return None, bound - room, _busiest(layout.pool)
    made = plan(layout.pool, tries=tries, enough=room)
    if made.size <= room:
        return made, 0, set()
    return None, made.size - room, {b.id for b in layout.pool if made.offsets[b.id] + b.extent > room}


def _busiest(buffers: Sequence[Buffer]) -> set[str]:
    """The buffers live at the step that holds the most bytes, the first of such steps."""
    step = max((b.lower for b in buffers), key=lambda step: (sum(b.extent for b in buffers if b.lower <= step < b.upper), -step), default=0)
    return {b.id for b in buffers if b.lower <= step < b.upper}


def _choose(here: Sequence[Wanted], level: Mapping[str, int], arena: Arena, excess: int, guilty: set[str]) -> Wanted:
    """The buffer to move on to its next arena, of those whose leaving helps."""
    concerned = [w for w in here if w.kept or w.buffer.id in guilty]
    able = [w for w in concerned if level[w.buffer.id] + 1 < len(w.arenas)]
    if not able:
        needed = arena.capacity + excess
        raise MemoryTooSmall(
            f"arena {arena.name} has {arena.capacity} bytes, {needed} are needed by what may lie nowhere else: "
            f"{_some(sorted(w.buffer.id for w in concerned))}",
            needed=needed,
            capacity=arena.capacity,
            hint=f"give it at least {needed} bytes, let some lie elsewhere, or tile the work smaller",
        )
    alone = [w for w in able if w.buffer.extent >= excess]
    if alone:
        return min(alone, key=lambda w: (w.traffic, w.buffer.extent, w.buffer.id))
    return min(able, key=lambda w: (w.reuse, -w.buffer.extent, w.buffer.id))


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
