"""How long a systolic array takes for one product, and what it reads and writes meanwhile: closed forms, no simulation.

An array of R rows and C columns of elements computes [m,k] times [k,n]. What stays in the elements gives the dataflow its name, and the
third size streams through. A product larger than the array is cut into folds, which run one after the other:

    dataflow   on the rows   on the columns   streams   cycles of one fold
    os         m             n                k         k + R + C - 2     operands enter skewed; the drain overlaps
    ws         k             n                m         m + 2R + C - 2    R to load the weights, then as above
    is         k             m                n         n + 2R + C - 2    R to load the inputs

These are the counts of SCALE-Sim 2 and 3, which build every operand's schedule to find them; benchmarks/npu_cycles.py compares the two. Its
"Total Cycles" is the index of the last cycle, one less than the number of cycles given here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import Array, Dataflow


@dataclass(frozen=True, slots=True)
class Mapping:
    """A product as an array sees it."""

    on_rows: int
    on_cols: int
    streams: int
    row_folds: int
    col_folds: int
    fold_cycles: int

    @property
    def folds(self) -> int:
        return self.row_folds * self.col_folds

    @property
    def cycles(self) -> int:
        return self.folds * self.fold_cycles


@dataclass(frozen=True, slots=True)
class OperandTraffic:
    """Words between the array and its SRAM. Partial sums that come back to be added to are in `sum_reads`."""

    input_reads: int
    weight_reads: int
    sum_writes: int
    sum_reads: int


def map_product(m: int, n: int, k: int, array: Array, dataflow: Dataflow) -> Mapping:
    match dataflow:
        case "os":
            on_rows, on_cols, streams, load = m, n, k, 0
        case "ws":
            on_rows, on_cols, streams, load = k, n, m, array.rows
        case "is":
            on_rows, on_cols, streams, load = k, m, n, array.rows
    return Mapping(
        on_rows=on_rows,
        on_cols=on_cols,
        streams=streams,
        row_folds=-(-on_rows // array.rows),
        col_folds=-(-on_cols // array.cols),
        fold_cycles=load + streams + array.rows + array.cols - 2,
    )


def gemm_cycles(m: int, n: int, k: int, array: Array, dataflow: Dataflow) -> int:
    """Cycles of [m,k] times [k,n] when no operand is ever waited for."""
    return map_product(m, n, k, array, dataflow).cycles


def utilisation(m: int, n: int, k: int, array: Array, dataflow: Dataflow) -> float:
    """Multiply-accumulates done over those that the elements could have done meanwhile, 0 to 1."""
    return m * n * k / (gemm_cycles(m, n, k, array, dataflow) * array.macs_per_cycle)


def mapping_efficiency(m: int, n: int, k: int, array: Array, dataflow: Dataflow) -> float:
    """The part of the elements that has something to do, over the folds, 0 to 1: what the edges of a product leave idle."""
    mapped = map_product(m, n, k, array, dataflow)
    return mapped.on_rows * mapped.on_cols / (mapped.folds * array.macs_per_cycle)


def operand_traffic(m: int, n: int, k: int, array: Array, dataflow: Dataflow) -> OperandTraffic:
    """What stays is read once; what streams is read once for every fold across it; sums leave once for every fold of k."""
    mapped = map_product(m, n, k, array, dataflow)
    rows, cols = mapped.row_folds, mapped.col_folds
    match dataflow:
        case "os":
            return OperandTraffic(input_reads=m * k * cols, weight_reads=k * n * rows, sum_writes=m * n, sum_reads=0)
        case "ws":
            return OperandTraffic(input_reads=m * k * cols, weight_reads=k * n, sum_writes=m * n * rows, sum_reads=m * n * (rows - 1))
        case "is":
            return OperandTraffic(input_reads=m * k, weight_reads=k * n * cols, sum_writes=m * n * rows, sum_reads=m * n * (rows - 1))


def convolution(
    height: int, width: int, kernel_height: int, kernel_width: int, channels: int, filters: int, stride: int
) -> tuple[int, int, int]:
    """(m, n, k) of a convolution without padding, as a product of unrolled windows and filters."""
    rows = -(-(height - kernel_height + stride) // stride)
    columns = -(-(width - kernel_width + stride) // stride)
    return rows * columns, filters, kernel_height * kernel_width * channels
