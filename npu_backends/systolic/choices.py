"""Every way to cut a product that fits the SRAM, and for each what it cannot do without: many at once, as arrays.

Loads, array and stores cannot each take less than their own sum, and those sums need no walk over the tiles: an operand crosses as a whole
as often as its tiles come in, over how many tiles it has. loops.py counts one choice exactly; nothing here is above what it counts.

Tile sizes are multiples of what the array takes at once, 64 different ones of each size at most. Of an array with a side below FEWEST,
multiples of as many of its turns as make FEWEST: it is so much slower than its memory that thousands of finer ones are equally good, and
each would have to be counted. Where none of these fits, the finer ones are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base import Tiling
from ..spec import DEEPEST_GROUP, Array, Dataflow, Spec
from .cycles import map_product
from .gemm import Gemm

ORDERS = ("mnk", "nmk", "mkn", "nkm", "kmn", "knm")  # the first of equals is taken
MOST_SIZES = 64
FEWEST = 4  # of rows or columns: the smallest side of an array whose own size is taken
STREAMING: dict[Dataflow, str] = {"os": "k", "ws": "m", "is": "n"}
BITS = {"m": 1, "n": 2, "k": 4}
ROUNDING = 1e-3  # what sums of floating point may be above the whole number that they stand for

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def sizes(size: int, unit: int) -> list[int]:
    """Tile sizes of a dimension: multiples of `unit` below it, and itself."""
    step = unit * max(1, -(-size // (unit * MOST_SIZES)))
    return [*range(step, size, step), size]


def units(array: Array, dataflow: Dataflow) -> tuple[int, int, int]:
    """What the array takes at once of m, n and k; of the size that streams, one group of weights."""
    match dataflow:
        case "os":
            return array.rows, array.cols, DEEPEST_GROUP
        case "ws":
            return DEEPEST_GROUP, array.cols, array.rows
        case "is":
            return array.cols, DEEPEST_GROUP, array.rows


def several(side: int) -> int:
    """A side of the array, or as many times it as make FEWEST."""
    return side * max(1, -(-FEWEST // side))


def smallest_tilings(gemm: Gemm, spec: Spec) -> Iterator[Tiling]:
    for dataflow in spec.array.dataflows:
        um, un, uk = units(spec.array, dataflow)
        yield Tiling(dataflow, min(um, gemm.m), min(un, gemm.n), min(uk, gemm.k), ORDERS[0])


@dataclass(frozen=True, slots=True)
class Choices:
    """Tilings that fit, and for each the cycles and the DRAM bytes that it cannot do without."""

    blocks: tuple[_Block, ...]
    cycles: Ints
    dram_bytes: Ints

    def __len__(self) -> int:
        return len(self.cycles)

    def __getitem__(self, choice: int) -> Tiling:
        for block in self.blocks:
            if choice < len(block.tm):
                return Tiling(block.dataflow, int(block.tm[choice]), int(block.tn[choice]), int(block.tk[choice]), block.order)
            choice -= len(block.tm)
        raise IndexError(choice)


@dataclass(frozen=True, slots=True)
class _Block:
    """Choices of one dataflow and one order."""

    dataflow: Dataflow
    order: str
    tm: Ints
    tn: Ints
    tk: Ints


def all_choices(gemm: Gemm, spec: Spec, room: int) -> Choices:
    """All tilings whose tiles fit `room` bytes of SRAM."""
    array = replace(spec.array, rows=several(spec.array.rows), cols=several(spec.array.cols))
    found = _choices(gemm, spec, array, room)
    return found if len(found) or array == spec.array else _choices(gemm, spec, spec.array, room)


def _choices(gemm: Gemm, spec: Spec, whole: Array, room: int) -> Choices:
    """Those that are multiples of what an array `whole` takes at once."""
    bounds, traffics = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    blocks = []
    for dataflow in spec.array.dataflows:
        um, un, uk = units(whole, dataflow)
        grid = np.meshgrid(sizes(gemm.m, um), sizes(gemm.n, un), sizes(gemm.k, uk), indexing="ij")
        tiles = _Tiles(gemm, *(axis.ravel().astype(np.int64) for axis in grid))
        tiles = tiles.where(tiles.sram_needed() <= room)
        for order in ORDERS:
            chosen = tiles.where(tiles.order_matters(order))
            if len(chosen.tm):
                cycles, traffic = chosen.bounds(dataflow, order, spec)
                bounds.append(cycles)
                traffics.append(traffic)
                blocks.append(_Block(dataflow, order, chosen.tm, chosen.tn, chosen.tk))
    return Choices(tuple(blocks), np.concatenate(bounds), np.concatenate(traffics))


class _Tiles:
    """Many tile sizes of one product at once: what loops.py says of one of them, as arrays."""

    def __init__(self, gemm: Gemm, tm: Ints, tn: Ints, tk: Ints) -> None:
        self.gemm, self.tm, self.tn, self.tk = gemm, tm, tn, tk
        self.counts: dict[str, Ints] = {"m": -(-gemm.m // tm), "n": -(-gemm.n // tn), "k": -(-gemm.k // tk)}
        self.steps = self.counts["m"] * self.counts["n"] * self.counts["k"]

    def where(self, keep: NDArray[np.bool_]) -> _Tiles:
        return _Tiles(self.gemm, self.tm[keep], self.tn[keep], self.tk[keep])

    def sram_needed(self) -> Floats:
        gemm, counts = self.gemm, self.counts
        inputs = np.ceil(self.tm * self.tk * gemm.input_bits / 8) if gemm.inputs_in == "dram" else np.zeros(len(self.tm))
        weights = np.ceil(self.tk * self.tn * gemm.weight_bits / 8)
        sums = self.tm * self.tn * (gemm.sum_bits // 8)
        needed: Floats = inputs * np.minimum(2, counts["m"] * counts["k"])
        needed = needed + weights * np.minimum(2, counts["k"] * counts["n"])
        needed = needed + sums * np.minimum(2, counts["m"] * counts["n"])
        return needed

    def order_matters(self, order: str) -> NDArray[np.bool_]:
        """Whether no earlier order visits the tiles in the same way: loops of one turn can stand anywhere."""
        turning = sum((self.counts[letter] > 1) * bit for letter, bit in BITS.items())
        fresh = [all(_turning(order, mask) != _turning(other, mask) for other in ORDERS[: ORDERS.index(order)]) for mask in range(8)]
        return np.asarray(np.array(fresh)[turning])

    def events(self, letters: str, order: str) -> Ints:
        """How often a tile that depends on `letters` changes: the turns of all loops from the outermost to its innermost that turns."""
        changes = np.ones_like(self.steps)
        product = np.ones_like(self.steps)
        for letter in order:
            product = product * self.counts[letter]
            if letter in letters:
                changes = np.where(self.counts[letter] > 1, product, changes)
        return changes

    def bounds(self, dataflow: Dataflow, order: str, spec: Spec) -> tuple[Ints, Ints]:
        """Cycles and DRAM bytes."""
        gemm, counts = self.gemm, self.counts
        m, n, k = gemm.m, gemm.n, gemm.k
        whole = map_product(m, n, k, spec.array, dataflow)
        overhead = whole.fold_cycles - whole.streams
        array = whole.folds * (whole.streams + counts[STREAMING[dataflow]] * overhead)

        from_dram, to_dram = int(gemm.inputs_in == "dram"), int(gemm.outputs_in == "dram")
        input_events, weight_events, sum_events = (self.events(letters, order) for letters in ("mk", "nk", "mn"))
        outputs = counts["m"] * counts["n"]
        returns = (sum_events - outputs) * to_dram  # sums that leave before they are whole, and come back
        coming = from_dram * m * k * gemm.input_bits / 8 * (input_events / (counts["m"] * counts["k"]))
        coming = coming + k * n * gemm.weight_bits / 8 * (weight_events / (counts["k"] * counts["n"]))
        back = m * n * gemm.sum_bits / 8 * (returns / outputs)
        leaving = to_dram * m * n * gemm.output_bits / 8 + back

        speed = min(spec.dram.sustained_bytes_per_cycle, spec.sram.sustained_bytes_per_cycle)
        transfers = np.maximum.reduce([from_dram * input_events, weight_events, returns])
        load = transfers * spec.dram.latency_cycles + (coming + back) / speed
        store = to_dram * (sum_events * spec.sram.latency_cycles + leaving / speed)
        first_bytes = self.tk * (from_dram * self.tm * gemm.input_bits + self.tn * gemm.weight_bits) / 8
        first_load = spec.dram.latency_cycles + first_bytes / speed
        last_m, last_n, last_k = (
            size - (counts[x] - 1) * tile for x, size, tile in (("m", m, self.tm), ("n", n, self.tn), ("k", k, self.tk))
        )
        last_bits = last_m * last_n * min(gemm.output_bits, gemm.sum_bits)
        last_store = to_dram * (spec.sram.latency_cycles + last_bits / 8 / speed)
        # Beside the first load and the last store: the array's own sum; or all other loads and the last tile; or the first tile and all
        # other stores.
        first_tile = _array_cycles(self.tm, self.tn, self.tk, spec.array, dataflow)
        last_tile = _array_cycles(last_m, last_n, last_k, spec.array, dataflow)
        between = np.maximum.reduce([array, load - first_load + last_tile, first_tile + store - last_store])
        cycles = np.ceil(first_load + between + last_store - ROUNDING).astype(np.int64)
        return cycles, np.ceil(coming + back + leaving - ROUNDING).astype(np.int64)


def _array_cycles(m: Any, n: Any, k: Any, array: Array, dataflow: Dataflow) -> Any:
    """The closed form takes arrays as it takes numbers."""
    return map_product(m, n, k, array, dataflow).cycles


def _turning(order: str, mask: int) -> str:
    return "".join(letter for letter in order if mask & BITS[letter])
