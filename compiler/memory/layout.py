"""A place for every value of a graph that was cut into segments: arenas planned, proved, and read back by value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...npu_backends.base import SCRATCH, Placement, Plan, Segment, Tiling
from ...npu_backends.ir.graph import Graph
from .alias import Merged, merge
from .bound import lower_bound
from .buffer import Buffer
from .lifetimes import ON_CHIP, OUTSIDE, STATES, TILES, Needs, lifetimes, room_of, states_of
from .plan import MemoryPlan
from .spill import leaving
from .verifier import verify, verify_plan

Planner = Callable[[Sequence[Buffer]], MemoryPlan]


@dataclass(frozen=True, slots=True)
class Layout:
    """Arenas by name, with the plan of each and the most bytes that it may have (None: what the machine has)."""

    placements: Mapping[str, Placement]  # of every value but the constants and what is made inside fused operations; and of scratch
    plans: Mapping[str, MemoryPlan]
    capacities: Mapping[str, int | None]
    outside: frozenset[str]  # values that would have stood on the chip, had there been room

    @property
    def arenas(self) -> dict[str, int]:
        return {name: plan.size for name, plan in self.plans.items() if plan.size}

    def plan_of(self, segment: Segment, tilings: Mapping[str, Tiling]) -> Plan:
        """What one segment's adapter is told."""
        constants = {value.name for value in segment.graph.constants}
        names = [value.name for value in segment.graph.values() if value.name not in constants]
        ops = {op.name for op in segment.graph.ops}
        placements = {name: self.placements[name] for name in names}
        if scratch := self.placements.get(f"{segment.chip}{SCRATCH}"):
            placements[SCRATCH] = scratch
        return Plan(placements, self.arenas, {name: tiling for name, tiling in tilings.items() if name in ops})


def lay_out(
    graph: Graph,
    segments: Sequence[Segment],
    planner: Planner,
    *,
    alignment: int,
    scratch: Mapping[str, int] | None = None,
    staging: Mapping[str, int] | None = None,
    room: Mapping[str, int] | None = None,
    keeps: bool = True,
) -> Layout:
    """Plan all arenas. `scratch`: bytes of the memory of each chip that has one of its own; what does not fit there stands outside, and
    without `keeps` everything but the tiles does: a chip whose operations load all they read. `room`: bytes of SCRATCH for each
    chip, in which its segments compute one after the other; an arena of its own, so that it stands in one place for all of them. For the
    rest see lifetimes.

    Where too much lives at once, values leave the chip (spill); what moves most comes back where room was left in the end. Raises
    MemoryTooSmall when tiles alone are more than the chip has.
    """
    capacity = min((scratch or {}).values(), default=0)
    reads = Counter(value.name for segment in segments for op in segment.graph.ops for value in op.inputs)
    bytes_of = {value.name: value.bytes for value in graph.values()}
    asked = partial(lifetimes, graph, segments, alignment=alignment, scratch=(scratch or {}) if keeps else (), staging=staging)
    groups: list[frozenset[str]] = []  # values outside, those together that share a place
    gaps = 0
    while True:
        inner = _merged(asked(outside=frozenset().union(*groups))[ON_CHIP])
        on_chip = planner(inner.buffers)
        if on_chip.size <= capacity:
            break
        if on_chip.bound + gaps <= capacity:  # above the bound the planner leaves gaps: then a little less must live at once
            gaps += on_chip.size - capacity
        groups += leaving(inner, reads, capacity, TILES, gaps)
    for group in sorted(groups, key=lambda group: (-sum(bytes_of[name] * reads[name] for name in group), sorted(group))):
        fewer = [other for other in groups if other != group]
        inner = _merged(asked(outside=frozenset().union(*fewer))[ON_CHIP])
        if lower_bound(inner.buffers) <= capacity and (again := planner(inner.buffers)).size <= capacity:
            groups, on_chip = fewer, again
    outside = frozenset().union(*groups)
    needs = {**asked(outside=outside), STATES: states_of(graph, alignment)}
    merged = {name: _merged(one) for name, one in needs.items()}
    plans = {ON_CHIP: on_chip, OUTSIDE: planner(merged[OUTSIDE].buffers), STATES: planner(merged[STATES].buffers)}
    capacities = {ON_CHIP: capacity, OUTSIDE: None, STATES: None}
    placements: dict[str, Placement] = {}
    for name, plan in plans.items():
        placements |= _placed(name, needs[name], merged[name], plan)
    steps = sum(len(segment.graph.ops) for segment in segments)
    for chip, size in (room or {}).items():
        name, id = room_of(chip), f"{chip}{SCRATCH}"
        plans[name], capacities[name] = planner([Buffer(id, 0, steps, size, alignment)]), None
        verify_plan(plans[name])
        placements[id] = Placement(name, plans[name].offsets[id], size)
    return Layout(placements, plans, capacities, outside)


def _merged(needs: Needs) -> Merged:
    return merge(needs.buffers, needs.views, needs.pairs)


def _placed(arena: str, needs: Needs, merged: Merged, plan: MemoryPlan) -> dict[str, Placement]:
    """Proved as planned, and again as read back for every value."""
    verify_plan(plan)
    offsets = merged.offsets(plan.offsets)
    verify(needs.buffers, offsets, plan.size, needs.views, merged.taken)
    return {buffer.id: Placement(arena, offsets[buffer.id], buffer.size) for buffer in needs.buffers if not buffer.id.endswith(TILES)}
