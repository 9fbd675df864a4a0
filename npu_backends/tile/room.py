"""The scratch memory that kernels run in: one at a time, so the largest says how much; of one model all kernels share it.

scratch   |slots of the kernel that runs|floats of the instruction that runs|
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...shared_protocol.compile_errors import ArtifactRejected, PlanInvalid
from ..base import SCRATCH, Plan
from ..ir.semantics import Array
from .computations import workspace_floats
from .compute import Workspace
from .execute import Step, bind, slot_bytes
from .program import Kernel


def room_for(kernels: Iterable[Kernel]) -> int:
    """Bytes of scratch that kernels need which take turns."""
    return max((slot_bytes(kernel) + 4 * workspace_floats(kernel) for kernel in kernels), default=0)


@dataclass(frozen=True, slots=True, eq=False)
class Room:
    """Bytes, and the kernels that are bound to them."""

    scratch: Array
    bound: dict[Kernel, tuple[Step, ...]] = field(default_factory=dict)

    def steps_of(self, kernel: Kernel) -> tuple[Step, ...]:
        """Of a kernel that there is room for."""
        steps = self.bound.get(kernel)
        if steps is None:
            start, floats = slot_bytes(kernel), workspace_floats(kernel)
            space = Workspace(self.scratch[start : start + 4 * floats].view("f4"))
            steps = self.bound[kernel] = tuple(bind(kernel, self.scratch[:start], space))
        return steps


def own_room(plan: Plan, kernels: Iterable[Kernel]) -> Room | None:
    """Made now where the plan has none, which no other segment shares. Raises ArtifactRejected where the plan's is too small."""
    place, needed = plan.placements.get(SCRATCH), room_for(kernels)
    if place is None:
        return Room(np.zeros(needed, np.uint8))
    if place.bytes < needed:
        raise ArtifactRejected(f"the plan has {place.bytes} bytes of scratch, and the segment needs {needed}", hint="compile again")
    return None


class Shared:
    """The room that the plan gives to all segments of an adapter."""

    def __init__(self) -> None:
        self._room: Room | None = None

    def room(self, buffers: Mapping[str, Array]) -> Room:
        """Raises PlanInvalid where the plan's scratch is not among a run's buffers."""
        scratch = buffers.get(SCRATCH)
        if scratch is None:
            raise PlanInvalid("scratch is placed by the plan, and there is no buffer for it")
        if self._room is None or self._room.scratch is not scratch:
            self._room = Room(scratch)
        return self._room
