"""What a chip can reach at best, given how much it must read: the roof, and where on it a piece of work stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..spec import Spec


@dataclass(frozen=True, slots=True)
class Roof:
    """`intensity` is multiply-accumulates per byte of DRAM traffic; speeds are per second."""

    intensity: float
    attainable_macs: float
    reached_macs: float
    bound_by: Literal["bandwidth", "compute"]

    @property
    def reached(self) -> float:
        """Of what the roof allows, 0 to 1."""
        return self.reached_macs / self.attainable_macs


def dram_bytes_per_second(spec: Spec) -> float:
    return min(spec.dram.sustained_bytes_per_cycle, spec.sram.sustained_bytes_per_cycle) * spec.clock_hz


def ridge(spec: Spec) -> float:
    """Multiply-accumulates per byte from which on a chip is no longer bound by its memory."""
    return spec.peak_macs_per_second / dram_bytes_per_second(spec)


def roof(macs: int, dram_bytes: int, cycles: int, spec: Spec) -> Roof:
    """Where work of that size that takes `cycles` stands. Work that reads nothing is bound by compute."""
    intensity = macs / dram_bytes if dram_bytes else float("inf")
    below = intensity * dram_bytes_per_second(spec) if dram_bytes else float("inf")
    return Roof(
        intensity=intensity,
        attainable_macs=min(spec.peak_macs_per_second, below),
        reached_macs=macs / spec.seconds(cycles),
        bound_by="bandwidth" if below < spec.peak_macs_per_second else "compute",
    )


def most_tokens_per_second(weight_bytes: int, cache_bytes: int, spec: Spec) -> float:
    """Decoding one sequence reads every weight and all of its cache for each token."""
    return dram_bytes_per_second(spec) / (weight_bytes + cache_bytes)
