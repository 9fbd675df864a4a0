"""What no plan can be smaller than."""

from __future__ import annotations

from collections.abc import Sequence

from .buffer import Buffer


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """Bytes live at the busiest step, alignment included: the most that must lie side by side."""
    changes = [(b.lower, b.extent) for b in buffers] + [(b.upper, -b.extent) for b in buffers]
    live = most = 0
    for _, change in sorted(changes):  # at one step what dies (negative) goes before what is born
        live += change
        most = max(most, live)
    return most
