"""The answer of every planner: where each buffer lies, how much memory that takes, and how far from the least it is at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .bound import lower_bound
from .buffer import Buffer


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Offsets in bytes from the arena's start. Made once and replayed: nobody derives a place again at run time."""

    buffers: tuple[Buffer, ...]  # as planned: with lifetimes and sizes, so that a plan can be drawn and verified alone
    offsets: Mapping[str, int]
    size: int  # bytes that the arena needs
    bound: int  # bytes that no plan can go below
    planner: str  # who found it
    optimal: bool  # proved: no plan is smaller

    @property
    def ratio(self) -> float:
        """Size over bound: 1.0 is perfect; a plan may be optimal above it, for the bound is not always reached."""
        return self.size / self.bound if self.bound else 1.0


def height(buffers: Sequence[Buffer], offsets: Mapping[str, int]) -> int:
    """Bytes that the offsets take."""
    return max((offsets[b.id] + b.extent for b in buffers), default=0)


def make_plan(buffers: Sequence[Buffer], offsets: Mapping[str, int], planner: str, optimal: bool = False) -> MemoryPlan:
    """A plan with its size and bound. It is optimal when proved so, or when it is as small as the bound."""
    size, bound = height(buffers, offsets), lower_bound(buffers)
    return MemoryPlan(tuple(buffers), {b.id: offsets[b.id] for b in buffers}, size, bound, planner, optimal or size == bound)
