"""A place for every value of a graph that was cut into segments: arenas planned, proved, and read back by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...npu_backends.base import Placement, Plan, Segment, Tiling
from ...npu_backends.ir.graph import Graph
from ...shared_protocol.errors import PlanInvalid
from .alias import Merged, merge
from .buffer import Buffer
from .lifetimes import ON_CHIP, OUTSIDE, STATES, TILES, Needs, lifetimes, states_of
from .plan import MemoryPlan
from .verifier import verify, verify_plan

Planner = Callable[[Sequence[Buffer]], MemoryPlan]


@dataclass(frozen=True, slots=True)
class Layout:
    """Arenas by name, with the plan of each and the most bytes that it may have (None: what the machine has)."""

    placements: Mapping[str, Placement]  # of every value but the constants and what is made inside fused operations
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
        return Plan(placements, self.arenas, {name: tiling for name, tiling in tilings.items() if name in ops})


def lay_out(
    graph: Graph,
    segments: Sequence[Segment],
    planner: Planner,
    *,
    alignment: int,
    scratch: Mapping[str, int] | None = None,
    staging: Mapping[str, int] | None = None,
    keeps: bool = True,
    overlaps: bool = True,
) -> Layout:
    """Plan all arenas. `scratch`: bytes of the memory of each chip that has one of its own; what does not fit there stands outside, and
    without `keeps` everything but the tiles does: a chip whose operations load all they read. For the rest see lifetimes.

    Where too much lives at once, what is read least often leaves the chip, of equals the largest. Raises PlanInvalid when tiles alone are
    more than the chip has.
    """
    capacity = min((scratch or {}).values(), default=0)
    reads: dict[str, int] = {}
    for segment in segments:
        for op in segment.graph.ops:
            for value in op.inputs:
                reads[value.name] = reads.get(value.name, 0) + 1
    outside: set[str] = set()
    room = capacity
    while True:
        needs = lifetimes(
            graph,
            segments,
            alignment=alignment,
            scratch=(scratch or {}) if keeps else (),
            outside=outside,
            staging=staging,
            overlaps=overlaps,
        )
        merged = {name: merge(one.buffers, one.views, one.pairs) for name, one in needs.items()}
        on_chip = planner(merged[ON_CHIP].buffers)
        if on_chip.size <= capacity:
            break
        # above the bound the planner leaves gaps: then a little less must live at once
        room -= on_chip.size - capacity if on_chip.bound <= room else 0
        outside |= _leaving(merged[ON_CHIP], reads, room)
    plans = {ON_CHIP: on_chip, OUTSIDE: planner(merged[OUTSIDE].buffers)}
    states = states_of(graph, alignment)
    needs, merged = {**needs, STATES: states}, {**merged, STATES: merge(states.buffers, states.views)}
    plans[STATES] = planner(merged[STATES].buffers)
    capacities = {ON_CHIP: capacity, OUTSIDE: None, STATES: None}
    placements: dict[str, Placement] = {}
    for name, plan in plans.items():
        placements |= _placed(name, needs[name], merged[name], plan)
    return Layout(placements, plans, capacities, frozenset(outside))


def _leaving(merged: Merged, reads: Mapping[str, int], room: int) -> set[str]:
    """Values that are to leave the chip, so that at no step more than `room` bytes of it are taken."""
    groups = {buffer.id: buffer for buffer in merged.buffers}
    members: dict[str, list[str]] = {}
    for name, (group, _) in merged.places.items():
        members.setdefault(group, []).append(name)
    worth = {id: (sum(reads.get(name, 0) for name in names), -groups[id].extent, id) for id, names in members.items()}
    live: dict[str, Buffer] = {}
    left: set[str] = set()
    for buffer in sorted(groups.values(), key=lambda one: (one.lower, one.id)):
        live = {id: other for id, other in live.items() if other.upper > buffer.lower} | {buffer.id: buffer}
        while sum(one.extent for one in live.values()) > room:
            may = [id for id in live if not id.endswith(TILES)]
            if not may:
                raise PlanInvalid(f"{buffer.id} alone takes more than the {room} bytes that the chip has for values and tiles")
            chosen = min(may, key=lambda id: worth[id])
            del live[chosen]
            left |= set(members[chosen])
    return left


def _placed(arena: str, needs: Needs, merged: Merged, plan: MemoryPlan) -> dict[str, Placement]:
    """Proved as planned, and again as read back for every value."""
    verify_plan(plan)
    offsets = merged.offsets(plan.offsets)
    verify(needs.buffers, offsets, plan.size, needs.views, merged.taken)
    return {buffer.id: Placement(arena, offsets[buffer.id], buffer.size) for buffer in needs.buffers if not buffer.id.endswith(TILES)}
