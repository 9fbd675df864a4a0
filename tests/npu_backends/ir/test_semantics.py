"""Integer products are exact, and groups are added in the order that is said."""

from __future__ import annotations

import numpy as np
import pytest
from hybrid.npu_backends.ir.semantics import integer_products, linear_g32


@pytest.mark.parametrize(("rows", "columns", "outputs"), [(1, 32, 1), (3, 1024, 40), (2, 1025, 700), (1, 4864, 3), (5, 96, 3000)])
def test_integer_products_are_those_of_whole_numbers(rows: int, columns: int, outputs: int) -> None:
    rng = np.random.default_rng(rows)
    codes = rng.integers(-127, 128, (rows, columns)).astype(np.int8)
    weights = rng.integers(-128, 128, (outputs, columns)).astype(np.int8)
    codes[0], weights[0] = -127, -128  # the largest sum that there can be
    expected = codes.astype(np.int64) @ weights.T.astype(np.int64)
    found = integer_products(codes, weights)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)
    nibbles = (weights & 15).astype(np.uint8)
    np.testing.assert_array_equal(integer_products(codes, nibbles), codes.astype(np.int64) @ nibbles.T.astype(np.int64))


@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize(("rows", "columns", "outputs"), [(1, 32, 1), (3, 96, 700), (2, 1536, 40)])
def test_groups_are_added_one_after_the_other_whatever_is_computed_at_once(
    rows: int, columns: int, outputs: int, with_offsets: bool
) -> None:
    rng = np.random.default_rng(columns)
    codes = rng.integers(-127, 128, (rows, columns)).astype(np.int8)
    weights = rng.integers(0, 16, (outputs, columns)).astype(np.uint8)
    scales, offsets = (rng.standard_normal((outputs, columns // 32)).astype(np.float32) for _ in range(2))
    row_scales = rng.random(rows, np.float32)
    expected = np.zeros((rows, outputs), np.float32)
    for group in range(columns // 32):
        there = slice(32 * group, 32 * group + 32)
        sums = codes[:, there].astype(np.int64) @ weights[:, there].T.astype(np.int64)
        expected = expected + sums.astype(np.float32) * scales[:, group]
        if with_offsets:
            expected = expected + codes[:, there].astype(np.int64).sum(axis=1).astype(np.float32)[:, None] * offsets[:, group]
    expected = expected * row_scales[:, None]
    np.testing.assert_array_equal(linear_g32(codes, row_scales, weights, scales, *[offsets] * with_offsets), expected)
