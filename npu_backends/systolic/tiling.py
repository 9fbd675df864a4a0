"""How to cut a product so that it fits the SRAM and takes the fewest cycles; among those as good as the best, with the least traffic.

A choice is a dataflow, three tile sizes and an order of loops. Choices are counted step by step from the lowest bound up, until no bound
left is below the best count: the answer is the one that counting all of them would give, and few are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...shared_protocol.compile_errors import DoesNotFit
from ..base import Cost, Tiling
from ..spec import Spec
from .choices import Choices, all_choices, smallest_tilings
from .gemm import Gemm
from .io_bound import io_bound_bytes
from .loops import Counted, count, sram_needed

AS_GOOD = 100  # one part in so many more cycles is as good as the best, if it moves fewer bytes


@dataclass(frozen=True, slots=True)
class Tiled:
    """The chosen tiling of a product on a chip, and how far its traffic is from the least possible."""

    counted: Counted
    fewest_cycles: int  # of all choices
    io_bound_bytes: int
    choices: int  # that fit

    @property
    def tiling(self) -> Tiling:
        return self.counted.tiling

    @property
    def cost(self) -> Cost:
        return Cost(self.counted.cycles, self.counted.dram_bytes, self.counted.joules)

    @property
    def traffic_ratio(self) -> float:
        return self.counted.dram_bytes / self.io_bound_bytes


@lru_cache(maxsize=4096)
def tile_product(gemm: Gemm, spec: Spec, sram_bytes: int | None = None) -> Tiled:
    """The tiling of least traffic among those within a hundredth of the fewest cycles, within `sram_bytes` (the chip's SRAM unless given).

    Raises DoesNotFit when even the smallest tiles do not fit, with what they need.
    """
    room = spec.sram.bytes if sram_bytes is None else sram_bytes
    choices = all_choices(gemm, spec, room)
    if not len(choices):
        least = min(sram_needed(gemm, tiling) for tiling in smallest_tilings(gemm, spec))
        size = f"{gemm.m} x {gemm.n} x {gemm.k}"
        hint = "plan with more of the SRAM, or choose a chip with a smaller array or more SRAM"
        raise DoesNotFit(f"a product of {size} needs {least} bytes of SRAM on {spec.name} at least, {room} are free", hint=hint)
    counted: dict[int, Counted] = {}

    def of(choice: int) -> Counted:
        if choice not in counted:
            counted[choice] = count(gemm, choices[choice], spec)
        return counted[choice]

    fewest = _least(choices, of, lambda got: (got.cycles, got.dram_bytes), by_cycles=True)
    limit = fewest.cycles + fewest.cycles // AS_GOOD
    leanest = _least(choices, of, lambda got: (got.dram_bytes, got.cycles), by_cycles=False, limit=limit)
    return Tiled(leanest, fewest.cycles, io_bound_bytes(gemm, room), len(choices))


def _least(
    choices: Choices, of: Callable[[int], Counted], key: Callable[[Counted], tuple[int, int]], *, by_cycles: bool, limit: int | None = None
) -> Counted:
    """The choice of the least key among those of at most `limit` cycles. Bounds are never above what is counted, so what is bounded above
    the best so far need not be counted."""
    first, second = (choices.cycles, choices.dram_bytes) if by_cycles else (choices.dram_bytes, choices.cycles)
    best: Counted | None = None
    for choice in np.lexsort((second, first)):
        if best is not None and (first[choice], second[choice]) >= key(best):
            break
        if limit is not None and choices.cycles[choice] > limit:
            continue
        got = of(int(choice))
        if (limit is None or got.cycles <= limit) and (best is None or key(got) < key(best)):
            best = got
    assert best is not None  # the fewest cycles are within any limit
    return best
