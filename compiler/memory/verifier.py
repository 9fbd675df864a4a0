"""Is a plan right? One sweep over time, from the written offsets alone; it shares no code with what finds them.

    time     ──►  at every step: first the dead leave, then the born enter
    address  |..A..|....|..B..|      kept in the order of addresses, so that only the two neighbours of who enters need a look

O(n log n) comparisons. Buffers may meet on purpose in two ways only: a view lies within its owner, and an output takes its input's place at
the one step where that dies and it is born. Both must be declared; nothing else is let through.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence

from .alias import InPlace, View
from .buffer import Buffer
from .errors import PlanFault
from .plan import MemoryPlan

FAULTS = ("missing", "foreign", "negative", "alignment", "capacity", "overlap", "view", "in_place", "size", "bound")


def verify_plan(plan: MemoryPlan, capacity: int | None = None) -> None:
    """Prove a plan: its offsets, its size and its bound; that a size above the bound is optimal is not checked. Raises PlanFault."""
    top = verify(plan.buffers, plan.offsets, capacity)
    if plan.size != top:
        raise PlanFault(f"the plan says {plan.size} bytes, its buffers end at {top}", fault="size", ids=())
    most = _most_live(plan.buffers)
    if plan.bound != most:
        raise PlanFault(f"the plan says that {plan.bound} bytes are the least, {most} are live at the busiest step", fault="bound", ids=())


def verify(
    buffers: Sequence[Buffer],
    offsets: Mapping[str, int],
    capacity: int | None = None,
    views: Iterable[View] = (),
    pairs: Iterable[InPlace] = (),
) -> int:
    """Prove that no two buffers meet in time and space but those declared. Returns the bytes used; raises PlanFault with their ids.

    `pairs` are the in-place pairs that were taken: each must share one offset, one size and exactly one step.
    """
    lives = {b.id: [b.lower, b.upper] for b in buffers}
    rows = {b.id: b for b in buffers}
    if len(rows) < len(buffers):
        raise PlanFault("two buffers share an id", fault="foreign", ids=())
    for id in rows:
        if id not in offsets:
            raise PlanFault(f"buffer {id} has no place", fault="missing", ids=(id,))
    for id in offsets:
        if id not in rows:
            raise PlanFault(f"the plan places {id}, which was not asked for", fault="foreign", ids=(id,))
    for id, b in rows.items():
        if offsets[id] < 0:
            raise PlanFault(f"buffer {id} lies at {offsets[id]}", fault="negative", ids=(id,))
        if offsets[id] % b.alignment:
            raise PlanFault(f"buffer {id} lies at {offsets[id]}, its alignment is {b.alignment}", fault="alignment", ids=(id,))
        if capacity is not None and offsets[id] + _bytes(b) > capacity:
            raise PlanFault(f"buffer {id} ends at {offsets[id] + _bytes(b)}, the memory at {capacity}", fault="capacity", ids=(id,))
    inner = _check_views(rows, offsets, list(views), lives)
    _check_pairs(rows, offsets, list(pairs), inner, lives)
    _sweep([(lives[id][0], lives[id][1], offsets[id], offsets[id] + _bytes(b), id) for id, b in rows.items() if id not in inner])
    return max((offsets[id] + _bytes(b) for id, b in rows.items()), default=0)


def _check_views(rows: Mapping[str, Buffer], offsets: Mapping[str, int], views: list[View], lives: dict[str, list[int]]) -> dict[str, str]:
    """Each view lies where it says; its owner's life is stretched over it. Returns the owner of every view."""
    inner: dict[str, str] = {}
    for view in views:
        if view.id not in rows or view.of not in rows or view.id == view.of or view.id in inner:
            raise PlanFault(f"{view.id} cannot be a view of {view.of}", fault="view", ids=(view.id, view.of))
        start = offsets[view.of] + view.offset
        if offsets[view.id] != start or view.offset < 0 or view.offset + rows[view.id].size > rows[view.of].size:
            raise PlanFault(
                f"view {view.id} lies at {offsets[view.id]}, as bytes {view.offset} to {view.offset + rows[view.id].size} of {view.of}, "
                f"which has {rows[view.of].size} at {offsets[view.of]}",
                fault="view",
                ids=(view.id, view.of),
            )
        inner[view.id] = view.of
    for id in inner:
        owner = inner[id]
        for _ in inner:  # a chain of views is no longer than all of them, or it bites its tail
            if owner not in inner:
                break
            owner = inner[owner]
        else:
            raise PlanFault(f"{id} is a view of itself", fault="view", ids=(id,))
        if rows[id].lower < rows[owner].lower:
            raise PlanFault(f"view {id} is born before its owner {owner}", fault="view", ids=(id, owner))
        lives[owner][1] = max(lives[owner][1], rows[id].upper)
        inner[id] = owner
    return inner


def _check_pairs(
    rows: Mapping[str, Buffer], offsets: Mapping[str, int], pairs: list[InPlace], inner: Mapping[str, str], lives: dict[str, list[int]]
) -> None:
    """Each output takes over its input's place whole; the input's life is cut by the step of the handing over."""
    uppers = {id: upper for id, (_, upper) in lives.items()}
    for pair in pairs:
        if pair.input not in rows or pair.output not in rows:
            raise PlanFault(f"the pair {pair.input}, {pair.output} is not of this plan", fault="in_place", ids=(pair.input, pair.output))
        old, new = inner.get(pair.input, pair.input), inner.get(pair.output, pair.output)
        if offsets[pair.input] != offsets[pair.output] or offsets[old] != offsets[new] or _bytes(rows[old]) != _bytes(rows[new]):
            raise PlanFault(
                f"{pair.output} does not take the place of {pair.input} whole: {offsets[new]} and {_bytes(rows[new])} bytes against "
                f"{offsets[old]} and {_bytes(rows[old])}",
                fault="in_place",
                ids=(pair.input, pair.output),
            )
        if rows[new].lower != uppers[old] - 1:
            raise PlanFault(
                f"{pair.output} is born at step {rows[new].lower}, {pair.input} is needed until step {uppers[old] - 1}",
                fault="in_place",
                ids=(pair.input, pair.output),
            )
        lives[old][1] = uppers[old] - 1


def _sweep(boxes: list[tuple[int, int, int, int, str]]) -> None:
    """Boxes are (birth, death, start, end, id). Raises PlanFault at the first two that meet."""
    boxes = [box for box in boxes if box[0] < box[1]]
    births = sorted(boxes)
    deaths = sorted(boxes, key=lambda box: box[1])
    live: list[tuple[int, int, str, int]] = []  # by address; they are apart, so neighbours are enough
    gone = 0
    for birth, death, start, end, id in births:
        while gone < len(deaths) and deaths[gone][1] <= birth:
            _, dead, low, high, name = deaths[gone]
            live.pop(bisect_left(live, (low, high, name, dead)))
            gone += 1
        at = bisect_left(live, (start,))
        for low, high, name, until in live[max(at - 1, 0) : at + 1]:
            if low < end and start < high:
                raise PlanFault(
                    f"{id} at [{start}, {end}) and {name} at [{low}, {high}) are both live from step {birth} until {min(death, until)}",
                    fault="overlap",
                    ids=(name, id),
                )
        insort(live, (start, end, id, death))


def _bytes(b: Buffer) -> int:
    """What a buffer owns, worked out here again."""
    left = b.size % b.alignment
    return b.size + (b.alignment - left if left else 0)


def _most_live(buffers: Sequence[Buffer]) -> int:
    """The most bytes live at once: it is reached at some birth, so those are asked, by what was born and died until then."""
    born = sorted((b.lower, _bytes(b)) for b in buffers)
    died = sorted((b.upper, _bytes(b)) for b in buffers)
    most = alive = gone = 0
    for step, size in born:
        while gone < len(died) and died[gone][0] <= step:
            alive -= died[gone][1]
            gone += 1
        alive += size
        most = max(most, alive)
    return most
