"""Cycles of a systolic array: the closed forms against an array that is run cycle by cycle, and against a published simulator's output."""

import numpy as np
import pytest
from hybrid.npu_backends.spec import DATAFLOWS, Array, Dataflow
from hybrid.npu_backends.systolic.cycles import convolution, gemm_cycles, mapping_efficiency, operand_traffic, utilisation
from hypothesis import given, settings
from hypothesis import strategies as st

SIZES = st.integers(1, 70)
ARRAYS = st.builds(Array, st.integers(1, 12), st.integers(1, 12))
# (m, n, k), rows, cols, dataflow, index of the last cycle as SCALE-Sim 3.0.0 prints it
PRINTED = [
    ((256, 128, 256), 32, 32, "ws", 11199),
    ((256, 128, 256), 32, 32, "os", 10175),
    ((256, 128, 256), 16, 64, "os", 10687),
    ((100, 70, 50), 32, 32, "ws", 1163),
    ((100, 70, 50), 32, 32, "os", 1343),
    ((100, 70, 50), 16, 64, "os", 1791),
    ((1, 576, 576), 32, 32, "ws", 30779),
    ((1, 576, 576), 32, 32, "os", 11483),
    ((1, 576, 576), 16, 64, "os", 5885),
    ((64, 192, 576), 32, 32, "ws", 17063),
    ((64, 192, 576), 32, 32, "os", 7655),
    ((64, 192, 576), 16, 64, "os", 7847),
    ((100, 70, 50), 16, 64, "is", 1311),
    ((100, 70, 50), 16, 64, "ws", 1551),
    ((40, 130, 90), 16, 64, "is", 1343),
    ((40, 130, 90), 16, 64, "ws", 2411),
    ((256, 128, 256), 32, 32, "os", 52447 - 42272),  # with a narrow memory, less its stalls
    ((256, 128, 256), 32, 32, "ws", 52447 - 41248),
    ((256, 128, 256), 32, 32, "is", 19984 - 5777),
]


@pytest.mark.parametrize(("size", "rows", "cols", "dataflow", "last"), PRINTED)
def test_a_product_takes_as_long_as_the_published_simulator_says(
    size: tuple[int, int, int], rows: int, cols: int, dataflow: Dataflow, last: int
) -> None:
    assert gemm_cycles(*size, Array(rows, cols), dataflow) == last + 1


def test_a_convolution_is_a_product_of_windows_and_filters() -> None:
    # AlexNet's first layer, without padding: 55 x 55 windows of 11 x 11 x 3, 96 filters; cycles and percentages as SCALE-Sim prints them
    size = convolution(224, 224, 11, 11, channels=3, filters=96, stride=4)
    assert size == (55 * 55, 96, 363)
    assert gemm_cycles(*size, Array(32, 32), "ws") == 112283 + 1
    assert 100 * utilisation(*size, Array(32, 32), "ws") == pytest.approx(91.683, abs=1e-3)
    assert 100 * mapping_efficiency(*size, Array(32, 32), "ws") == pytest.approx(94.531, abs=1e-3)


def run_outputs_stationary(inputs: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, int]:
    """One fold on an array of the outputs' size: inputs enter from the left, weights from above, each row and column one cycle later."""
    (rows, depth), cols = inputs.shape, weights.shape[1]
    right, down, sums = np.zeros((rows, cols)), np.zeros((rows, cols)), np.zeros((rows, cols))
    cycles = 0
    while not np.array_equal(sums, inputs @ weights):
        right[:, 1:], down[1:] = right[:, :-1].copy(), down[:-1].copy()
        right[:, 0] = [inputs[row, cycles - row] if 0 <= cycles - row < depth else 0 for row in range(rows)]
        down[0] = [weights[cycles - col, col] if 0 <= cycles - col < depth else 0 for col in range(cols)]
        sums += right * down
        cycles += 1
    return sums, cycles


def run_weights_stationary(inputs: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, int]:
    """One fold on an array of the weights' size: a row of weights a cycle, then inputs from the left; sums move down and leave below."""
    count, (rows, cols) = len(inputs), weights.shape
    cycles = rows
    right, sums, out = np.zeros((rows, cols)), np.zeros((rows, cols)), np.full((count, cols), np.nan)
    step = 0
    while np.isnan(out).any():
        right[:, 1:] = right[:, :-1].copy()
        right[:, 0] = [inputs[step - row, row] if 0 <= step - row < count else 0 for row in range(rows)]
        sums = np.vstack([np.zeros(cols), sums[:-1]]) + right * weights
        for col in range(cols):
            if 0 <= step - col - (rows - 1) < count:
                out[step - col - (rows - 1), col] = sums[-1, col]
        step += 1
    return out, cycles + step


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 6), cols=st.integers(1, 6), streams=st.integers(1, 9), seed=st.integers(0, 99))
def test_the_closed_form_of_a_fold_is_what_an_array_takes_that_is_run_cycle_by_cycle(rows: int, cols: int, streams: int, seed: int) -> None:
    draw = np.random.default_rng(seed).integers
    array = Array(rows, cols)
    inputs, weights = draw(1, 9, (rows, streams)), draw(1, 9, (streams, cols))
    sums, cycles = run_outputs_stationary(inputs, weights)
    assert np.array_equal(sums, inputs @ weights) and cycles == gemm_cycles(rows, cols, streams, array, "os")
    inputs, weights = draw(1, 9, (streams, rows)), draw(1, 9, (rows, cols))
    sums, cycles = run_weights_stationary(inputs, weights)
    assert np.array_equal(sums, inputs @ weights) and cycles == gemm_cycles(streams, cols, rows, array, "ws")
    # with inputs in the elements the same array computes the transposed product
    assert cycles == gemm_cycles(cols, streams, rows, array, "is")


@settings(max_examples=50, deadline=None)
@given(m=SIZES, n=SIZES, k=SIZES, array=ARRAYS, dataflow=st.sampled_from(DATAFLOWS))
def test_no_size_grows_without_cycles_staying_or_growing(m: int, n: int, k: int, array: Array, dataflow: Dataflow) -> None:
    cycles = gemm_cycles(m, n, k, array, dataflow)
    assert all(gemm_cycles(*more, array, dataflow) >= cycles for more in ((m + 1, n, k), (m, n + 1, k), (m, n, k + 1)))
    assert 0 < utilisation(m, n, k, array, dataflow) <= mapping_efficiency(m, n, k, array, dataflow) <= 1


@settings(max_examples=50, deadline=None)
@given(m=SIZES, n=SIZES, k=SIZES, array=ARRAYS, dataflow=st.sampled_from(DATAFLOWS))
def test_operand_traffic_is_what_the_folds_read_one_by_one(m: int, n: int, k: int, array: Array, dataflow: Dataflow) -> None:
    on_rows, on_cols = {"os": (m, n), "ws": (k, n), "is": (k, m)}[dataflow]
    reads = {"inputs": 0, "weights": 0}
    writes = again = 0
    for row in range(0, on_rows, array.rows):
        for col in range(0, on_cols, array.cols):
            high, wide = min(array.rows, on_rows - row), min(array.cols, on_cols - col)
            if dataflow == "os":
                reads["inputs"] += high * k
                reads["weights"] += k * wide
                writes += high * wide
            else:
                stays, passes = ("weights", "inputs") if dataflow == "ws" else ("inputs", "weights")
                streams = m if dataflow == "ws" else n
                reads[stays] += high * wide
                reads[passes] += streams * high
                writes += streams * wide
                again += streams * wide if row else 0
    traffic = operand_traffic(m, n, k, array, dataflow)
    assert (traffic.input_reads, traffic.weight_reads) == (reads["inputs"], reads["weights"])
    assert (traffic.sum_writes, traffic.sum_reads) == (writes, again)
