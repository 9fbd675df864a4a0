"""A lowered segment as bytes, for adapters whose chip reads the graph itself: whole and of the right form, or refused."""

from __future__ import annotations

import hashlib
from typing import TypeVar

import msgspec

from ..shared_protocol.compile_errors import ArtifactRejected
from ..shared_protocol.errors import HybridError
from .base import SCRATCH, Artifact, Placement, Plan, Segment


class Lowered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Adapters that keep more than the graph, as the list of a chip's instructions, add fields of their own."""

    abi: str
    segment: Segment
    plan: Plan


Form = TypeVar("Form", bound=Lowered)


def pack(lowered: Lowered) -> Artifact:
    """The same bytes for the same segment and plan, whatever the order in which the plan was made."""
    return Artifact.of(msgspec.msgpack.encode(lowered, order="sorted"), lowered.abi)


def unpack(artifact: Artifact, abi: str, form: type[Form]) -> Form:
    """Raises ArtifactRejected for bytes that are torn, of another adapter or form, or that do not hold together."""
    if artifact.abi != abi:
        raise ArtifactRejected(f"the artifact is of the form {artifact.abi!r}, and {abi!r} is read here", hint="compile again")
    if hashlib.sha256(artifact.data).hexdigest() != artifact.sha256:
        raise ArtifactRejected("the artifact's bytes are not those that were compiled: their SHA-256 differs", hint="compile again")
    try:
        lowered = msgspec.msgpack.decode(artifact.data, type=form)
    except (msgspec.MsgspecError, HybridError) as error:
        raise ArtifactRejected(f"the artifact does not hold together: {error}", hint="compile again") from None
    if lowered.abi != abi:
        raise ArtifactRejected(f"the artifact says that its form is {lowered.abi!r}, not {abi!r}", hint="compile again")
    _check_places(lowered)
    return lowered


def _check_places(lowered: Lowered) -> None:
    plan, graph = lowered.plan, lowered.segment.graph
    constants = {value.name for value in graph.constants}
    for value in graph.values():
        place = plan.placements.get(value.name)
        if value.name in constants:
            continue
        if place is None or place.bytes < value.bytes:
            raise ArtifactRejected(f"the artifact has no place of {value.bytes} bytes for {value}", hint="compile again")
        _check_within(value.name, place, plan)
    if scratch := plan.placements.get(SCRATCH):
        _check_within("scratch", scratch, plan)


def _check_within(name: str, place: Placement, plan: Plan) -> None:
    if place.offset < 0 or place.offset + place.bytes > plan.arenas.get(place.arena, 0):
        raise ArtifactRejected(f"{name} stands outside its arena {place.arena!r}", hint="compile again")
