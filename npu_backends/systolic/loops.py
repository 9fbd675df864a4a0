"""What a tiling does, step by step: which tiles come in, what the array computes of them, what leaves.

A step is one tile of the product. An operand's tile comes in when it is another than the step before had; sums leave when the next step
adds to others, and come back if they were not whole. Order "nmk" visits all of k before other rows, and all rows before other columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ..base import Tiling
from ..spec import Dataflow, Spec
from .cycles import gemm_cycles, operand_traffic
from .dma import Step, double_buffered, load_cycles, store_cycles
from .energy import joules
from .gemm import Gemm

Tile = tuple[int, int, int]  # m, n, k


@dataclass(frozen=True, slots=True)
class Counted:
    """A tiling of a product, counted."""

    gemm: Gemm
    tiling: Tiling
    steps: int
    cycles: int  # with loads and stores overlapped
    array_cycles: int
    load_cycles: int
    store_cycles: int
    dram_bytes: int
    sram_bytes: int  # read and written by the array and by transfers
    sram_needed: int  # at once
    joules: float

    @property
    def bound_by(self) -> str:
        """The engine that works longest."""
        return max(("array", self.array_cycles), ("load", self.load_cycles), ("store", self.store_cycles), key=lambda pair: pair[1])[0]


def tile_counts(gemm: Gemm, tiling: Tiling) -> dict[str, int]:
    return {"m": -(-gemm.m // tiling.tm), "n": -(-gemm.n // tiling.tn), "k": -(-gemm.k // tiling.tk)}


def sram_needed(gemm: Gemm, tiling: Tiling) -> int:
    """Bytes of operand tiles and sums at once; two of each, unless there is only one ever."""
    counts = tile_counts(gemm, tiling)
    inputs = gemm.input_bytes(tiling.tm, tiling.tk) if gemm.inputs_in == "dram" else 0
    weights = gemm.weight_bytes(tiling.tk, tiling.tn)
    sums = gemm.sum_bytes(tiling.tm, tiling.tn)
    return (
        inputs * min(2, counts["m"] * counts["k"]) + weights * min(2, counts["k"] * counts["n"]) + sums * min(2, counts["m"] * counts["n"])
    )


def visits(gemm: Gemm, tiling: Tiling) -> Iterator[tuple[int, int, int]]:
    """Indices (m, n, k) of the tiles in the order in which they are computed."""
    counts = tile_counts(gemm, tiling)
    where = [tiling.order.index(letter) for letter in "mnk"]
    for index in itertools.product(*(range(counts[letter]) for letter in tiling.order)):
        yield index[where[0]], index[where[1]], index[where[2]]


def count(gemm: Gemm, tiling: Tiling, spec: Spec) -> Counted:
    steps, dram, sram = run_steps(gemm, tiling, spec)
    return Counted(
        gemm=gemm,
        tiling=tiling,
        steps=len(steps),
        cycles=double_buffered(steps),
        array_cycles=sum(step.compute for step in steps),
        load_cycles=sum(step.load for step in steps),
        store_cycles=sum(step.store for step in steps),
        dram_bytes=dram,
        sram_bytes=sram + dram,  # what crosses to DRAM is read or written here once
        sram_needed=sram_needed(gemm, tiling),
        joules=joules(spec.energy, macs=gemm.macs, sram_bytes=sram + dram, dram_bytes=dram),
    )


def run_steps(gemm: Gemm, tiling: Tiling, spec: Spec) -> tuple[list[Step], int, int]:
    """The steps, the bytes that cross to and from DRAM, and the bytes between the array and SRAM."""
    steps: list[Step] = []
    dram = sram = 0
    parts = tile_counts(gemm, tiling)["k"]
    visited = dict[tuple[int, int], int]()  # parts of k that were added to the sums of an output tile
    cached = dict[Tile, tuple[int, int]]()
    order = list(visits(gemm, tiling))
    before: tuple[int, int, int] | None = None
    for position, (im, jn, lk) in enumerate(order):
        tile = (min(tiling.tm, gemm.m - im * tiling.tm), min(tiling.tn, gemm.n - jn * tiling.tn), min(tiling.tk, gemm.k - lk * tiling.tk))
        tm, tn, tk = tile
        if tile not in cached:
            cached[tile] = _array(gemm, tile, tiling, spec)
        compute, touched = cached[tile]
        coming = 0
        if gemm.inputs_in == "dram" and (before is None or (before[0], before[2]) != (im, lk)):
            coming += gemm.input_bytes(tm, tk)
        if before is None or before[1:] != (jn, lk):
            coming += gemm.weight_bytes(tk, tn)
        again = before is None or before[:2] != (im, jn)
        if gemm.outputs_in == "dram" and again and visited.get((im, jn)):
            coming += gemm.sum_bytes(tm, tn)
        visited[im, jn] = visited.get((im, jn), 0) + 1
        leaving = 0
        following = order[position + 1][:2] if position + 1 < len(order) else None
        if gemm.outputs_in == "dram" and following != (im, jn):
            leaving = gemm.output_bytes(tm, tn) if visited[im, jn] == parts else gemm.sum_bytes(tm, tn)
        steps.append(Step(load_cycles(coming, spec), compute, store_cycles(leaving, spec)))
        dram += coming + leaving
        sram += touched
        before = (im, jn, lk)
    return steps, dram, sram


def _array(gemm: Gemm, tile: Tile, tiling: Tiling, spec: Spec) -> tuple[int, int]:
    """Cycles of a tile on the array, and the bytes that it reads and writes in SRAM."""
    dataflow: Dataflow = tiling.dataflow  # type: ignore[assignment]
    words = operand_traffic(*tile, spec.array, dataflow)
    bits = words.input_reads * gemm.input_bits + words.weight_reads * gemm.weight_bits
    bits += (words.sum_writes + words.sum_reads) * gemm.sum_bits
    return gemm_cycles(*tile, spec.array, dataflow), int(-(-bits // 8))
