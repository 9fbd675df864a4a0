"""No index reaches the kernels that does not lie inside the model and its cache."""

import dataclasses

import numpy as np
import pytest
from hybrid.npu_backends.step import StepBatch
from hybrid.npu_backends.validate import check_batch
from hybrid.shared_protocol.errors import EngineFailed
from hybrid.tests.support.steps import batch_of

GOOD = batch_of([([1, 2, 3], 5, [1, 2]), ([4], 31, [3, 4])], rows=[2, 3])


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def check(batch: StepBatch) -> None:
    check_batch(batch, vocab_size=10, num_blocks=5, block_size=16, max_positions=40)


def test_a_good_batch_passes() -> None:
    check(GOOD)
    check(dataclasses.replace(GOOD, logit_rows=i32()))


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("token_ids", i32(1, 2, 10, 4), "token_ids must lie in 0..9, found 0..10"),
        ("token_ids", i32(1, -2, 3, 4), "token_ids must lie"),
        ("token_ids", np.array([1, 2, 3, 4], np.int64), "token_ids must be a C-contiguous int32"),
        ("token_ids", i32(1, 2, 3), "4 positions for 3 tokens"),
        ("positions", i32(5, 6, 7, 32), "positions must lie in 0..31"),  # outside the table's two blocks
        ("positions", i32(-1, 0, 1, 31), "positions must lie"),
        ("positions", i32(5, 7, 8, 31), "consecutive"),
        ("query_start", i32(0, 3), "query_start must run"),
        ("query_start", i32(0, 5, 4), "query_start must ascend"),
        ("query_start", i32(1, 3, 4), "query_start must run"),
        ("query_start", i32(0, 2, 4), "consecutive"),
        ("block_tables", np.array([[1, 2], [3, 5]], np.int32), "block_tables must lie in 0..4, found 0..5"),
        ("block_tables", i32(1, 2), "block_tables must be"),
        ("logit_rows", i32(2, 4), "logit_rows must lie"),
        ("logit_rows", i32(3, 2), "logit_rows must ascend"),
    ],
)
def test_a_bad_batch_is_refused_with_the_array_at_fault(field: str, value: np.ndarray, problem: str) -> None:
    with pytest.raises(EngineFailed, match=problem):
        check(dataclasses.replace(GOOD, **{field: value}))


def test_no_tokens_are_refused() -> None:
    with pytest.raises(EngineFailed, match="no tokens"):
        check(StepBatch(i32(), i32(), i32(0), np.zeros((0, 1), np.int32), i32()))


def test_a_sequence_without_tokens_in_this_step_is_allowed() -> None:
    check(StepBatch(i32(1, 2), i32(0, 1), i32(0, 2, 2), np.ones((2, 1), np.int32), i32(1)))
    check(StepBatch(i32(1, 2), i32(0, 1), i32(0, 0, 2), np.ones((2, 1), np.int32), i32(1)))
