"""Buffers that share a place on purpose, merged before planning, so that planners know nothing but buffers.

view: part of another buffer        in place: the output overwrites the input at the step that reads it
owner  |=========|......            input   |=======|
view        |===========|           output         |=======|
merged |================|           merged  |==============|
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from .buffer import Buffer, by_id, known
from .errors import InvalidBuffers


@dataclass(frozen=True, slots=True)
class View:
    """Buffer `id` is the bytes of buffer `of` from `offset` on; `of` then lives as long as its last view."""

    of: str
    id: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class InPlace:
    """`output` may take the place of `input` if that is read for the last time at the step where `output` is born."""

    input: str
    output: str


@dataclass(frozen=True, slots=True)
class Refused:
    """An in-place pair that keeps two places, and why."""

    pair: InPlace
    reason: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What a planner gets, and how its answer is read back for every buffer."""

    buffers: tuple[Buffer, ...]  # one for each group, under the id of its first member
    places: Mapping[str, tuple[str, int]]  # of every buffer: the group's id, and the offset within it
    taken: tuple[InPlace, ...]
    refused: tuple[Refused, ...]

    def offsets(self, planned: Mapping[str, int]) -> dict[str, int]:
        """Offsets of all buffers from those of the groups."""
        return {id: planned[group] + offset for id, (group, offset) in self.places.items()}


def merge(buffers: Sequence[Buffer], views: Sequence[View] = (), pairs: Sequence[InPlace] = ()) -> Merged:
    """Merge views into their owners, then in-place pairs in the order of their steps.

    A view that breaks a rule is an error, for its bytes cannot lie elsewhere. A pair that cannot share keeps two places, and `refused`
    says why: it costs memory and nothing else.
    """
    given = by_id(buffers)
    places = _places(given, views)
    groups = {id: given[id] for id, (group, _) in places.items() if id == group}
    for view in views:
        group, offset = places[view.id]
        groups[group] = _cover(groups[group], given[view.id], group)
        if offset % given[view.id].alignment:
            raise InvalidBuffers(
                f"view {view.id} begins at byte {offset} of {group}, which its alignment {given[view.id].alignment} does not divide",
                ids=(view.id, group),
            )
    taken, refused = [], []
    for pair in sorted(pairs, key=lambda p: (known(p.output, given, "an in-place pair").lower, p.input, p.output)):
        known(pair.input, given, "an in-place pair")
        reason = _obstacle(pair, places, groups)
        if reason:
            refused.append(Refused(pair, reason))
            continue
        kept, gone = places[pair.input][0], places[pair.output][0]
        groups[kept] = _cover(groups[kept], groups.pop(gone), kept)
        places = {id: (kept if group == gone else group, offset) for id, (group, offset) in places.items()}
        taken.append(pair)
    return Merged(tuple(groups.values()), places, tuple(taken), tuple(refused))


def _places(given: Mapping[str, Buffer], views: Sequence[View]) -> dict[str, tuple[str, int]]:
    """Follow views of views to the buffer that owns the bytes."""
    owners: dict[str, View] = {}
    for view in views:
        inner, outer = known(view.id, given, "a view"), known(view.of, given, f"view {view.id}")
        if view.id in owners:
            raise InvalidBuffers(f"buffer {view.id} is a view of both {owners[view.id].of} and {view.of}", ids=(view.id,))
        if view.offset < 0 or view.offset + inner.size > outer.size:
            raise InvalidBuffers(
                f"view {view.id} is bytes {view.offset} to {view.offset + inner.size} of {view.of}, which has {outer.size}",
                ids=(view.id, view.of),
            )
        if inner.lower < outer.lower:
            raise InvalidBuffers(f"view {view.id} is born at step {inner.lower}, before {view.of} at {outer.lower}", ids=(view.id, view.of))
        owners[view.id] = view
    places = {}
    for id in given:
        group, offset, seen = id, 0, {id}
        while group in owners:
            group, offset = owners[group].of, offset + owners[group].offset
            if group in seen:
                raise InvalidBuffers(f"buffer {group} is a view of itself", ids=tuple(sorted(seen)))
            seen.add(group)
        places[id] = (group, offset)
    return places


def _cover(first: Buffer, second: Buffer, id: str) -> Buffer:
    """One buffer that lives whenever either does."""
    lower, upper = min(first.lower, second.lower), max(first.upper, second.upper)
    return Buffer(id, lower, upper, max(first.size, second.size), lcm(first.alignment, second.alignment))


def _obstacle(pair: InPlace, places: Mapping[str, tuple[str, int]], groups: Mapping[str, Buffer]) -> str:
    """Why the output cannot take the input's place; empty when it can."""
    (input_group, input_offset), (output_group, output_offset) = places[pair.input], places[pair.output]
    old, new = groups[input_group], groups[output_group]
    if input_group == output_group:
        return "they share a place already"
    if new.lower >= old.upper:
        return f"{pair.input} is dead before {pair.output} is born, so the planner may place them freely"
    if new.lower != old.upper - 1:
        return f"{pair.input} or what shares its place lives until step {old.upper - 1}, {pair.output} is born at {new.lower}"
    if old.extent != new.extent or old.size != new.size:
        return f"{pair.input} has {old.size} bytes, {pair.output} {new.size}: a place of the larger would live for both"
    if input_offset != output_offset:
        return f"{pair.input} and {pair.output} are views at different offsets, {input_offset} and {output_offset}"
    return ""
