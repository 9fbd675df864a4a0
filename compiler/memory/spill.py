"""What leaves the chip where too much lives at once.

step      0    1    2    3
room      ----------------
a  8x     |=========|             at step 1 one of three must go: of those that free enough alone, the one that moves the fewest bytes
b  2x     |==============|        (size x reads); where none does, the one read least often, and then the next
c  1x          |====|
"""

from __future__ import annotations

from collections.abc import Mapping

from .alias import Merged
from .buffer import Buffer
from .errors import MemoryTooSmall


def leaving(merged: Merged, reads: Mapping[str, int], capacity: int, stays: str, gaps: int = 0) -> list[frozenset[str]]:
    """What is to leave, so that at no step more than `capacity` bytes are taken, `gaps` of them in vain: ids that share a place leave
    together.

    `reads`: how often each id is read. What ends with `stays` cannot leave. Raises MemoryTooSmall when that alone is too much.
    """
    room = capacity - gaps
    members: dict[str, set[str]] = {}
    for id, (group, _) in merged.places.items():
        members.setdefault(group, set()).add(id)
    left: list[frozenset[str]] = []
    live: list[Buffer] = []  # and still on the chip
    for step in sorted({buffer.lower for buffer in merged.buffers}):
        live = [buffer for buffer in live if buffer.upper > step] + [buffer for buffer in merged.buffers if buffer.lower == step]
        while (taken := sum(buffer.extent for buffer in live)) > room:
            may = [buffer for buffer in live if not buffer.id.endswith(stays)]
            if not may:
                raise MemoryTooSmall(
                    f"{', '.join(sorted(buffer.id for buffer in live))} take {taken + gaps} bytes at once, the chip has {capacity}",
                    needed=taken + gaps,
                    capacity=capacity,
                    hint=f"give it at least {taken + gaps} bytes, or tile the work smaller",
                )
            out = _chosen(may, {buffer.id: sum(reads.get(id, 0) for id in members[buffer.id]) for buffer in may}, taken - room)
            live.remove(out)
            left.append(frozenset(members[out.id]))
    return left


def _chosen(may: list[Buffer], reads: Mapping[str, int], excess: int) -> Buffer:
    if alone := [buffer for buffer in may if buffer.extent >= excess]:
        return min(alone, key=lambda buffer: (buffer.size * reads[buffer.id], buffer.extent, buffer.id))
    return min(may, key=lambda buffer: (reads[buffer.id], -buffer.extent, buffer.id))
