"""Kernels know shapes and tilings, and nothing of a chip; what they cannot compute is told."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from hybrid.npu_backends import tile
from hybrid.npu_backends.base import Tiling
from hybrid.npu_backends.conformance.cases import CASES as KIT_CASES
from hybrid.npu_backends.conformance.cases import TAILS
from hybrid.npu_backends.ir.kinds import KINDS
from hybrid.npu_backends.ir.op import Op, fused
from hybrid.npu_backends.ir.value import Value
from hybrid.npu_backends.tile.kernels import KERNELS, kernel_of, refusal
from hybrid.npu_backends.tile.program import Kernel
from hybrid.npu_backends.tile.verify import verify

CASES = {case.name: case.make(TAILS) for case in KIT_CASES}
TILING = Tiling("os", 2, 16, 32, "mnk")


def test_there_is_a_kernel_for_every_kind() -> None:
    assert set(KERNELS) == set(KINDS)


def test_kernels_know_no_chip() -> None:
    for file in Path(tile.__file__).parent.glob("*.py"):
        imported = {node.module for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)}
        assert not {name for name in imported if name and name.split(".")[0] in ("spec", "preset", "systolic", "cpu")}, file.name


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_stays_within_its_operands_and_slots(name: str) -> None:
    op = CASES[name]
    assert refusal(op) is None
    verify(kernel_of(op, TILING), [value.elements for value in (*op.inputs, *op.outputs)])


def loaded(kernel: Kernel, operand: int) -> int:
    """Elements that are loaded of an operand."""
    return sum(i.ins[0].rows * i.ins[0].cols for i in kernel.instructions if i.op == "load" and i.ins[0].place == operand)


@pytest.mark.parametrize(("order", "weights", "codes"), [("mnk", 3, 3), ("nmk", 3, 3), ("mkn", 3, 3)])
def test_tiles_that_change_are_loaded_again(order: str, weights: int, codes: int) -> None:
    """5 rows in tiles of 2 and 37 outputs in tiles of 16 are three of each, 96 inputs in tiles of 32 as well."""
    kernel = kernel_of(CASES["linear_i8"], Tiling("os", 2, 16, 32, order))
    assert (loaded(kernel, 2), loaded(kernel, 0)) == (weights * 37 * 96, codes * 5 * 96)


def test_a_tile_that_stays_is_loaded_once() -> None:
    by_rows = kernel_of(CASES["linear_i8"], Tiling("os", 2, 16, 96, "mnk"))
    by_outputs = kernel_of(CASES["linear_i8"], Tiling("os", 2, 16, 96, "nmk"))
    assert (loaded(by_rows, 2), loaded(by_rows, 0)) == (3 * 37 * 96, 5 * 96)
    assert (loaded(by_outputs, 2), loaded(by_outputs, 0)) == (37 * 96, 3 * 5 * 96)


def test_what_a_fused_operation_makes_and_reads_inside_never_leaves_the_chip() -> None:
    op = CASES["fused norm, quantise, linear_i8, add"]
    kernel = kernel_of(op, TILING)
    stored = Counter(i.out[0].place for i in kernel.instructions if i.op == "store")
    assert set(stored) == {len(op.inputs)}  # its one output
    assert loaded(kernel, 0) == 5 * 96  # rows come once, strip by strip


def test_what_follows_a_product_element_by_element_runs_on_each_of_its_tiles() -> None:
    """So that no whole rows of it are held: the slots are those of one tile of 2 x 16, whatever the number of outputs."""

    def kernel(outputs: int) -> Kernel:
        y, gated, z = (Value(name, (5, outputs), "f32") for name in ("y", "gated", "z"))
        read = Value("codes", (5, 96), "i8"), Value("scales", (5,), "f32"), Value("weights", (outputs, 96), "i8")
        linear = Op("linear_i8", (*read, Value("factors", (outputs,), "f32")), (y,))
        other = Value("other", (5, outputs), "f32")
        return kernel_of(fused((linear, Op("silu", (y,), (gated,)), Op("multiply", (gated, other), (z,))), (z,)), TILING)

    assert kernel(37).slots == kernel(370).slots
    tiles = [i for i in kernel(37).instructions if i.function == "silu"]
    assert [(i.out[0].rows, i.out[0].cols) for i in tiles] == [(rows, cols) for rows in (2, 2, 1) for cols in (16, 16, 5)]


def test_operations_that_differ_in_names_share_a_kernel() -> None:
    x, y = Value("other", (5, 96), "f32"), Value("result", (5, 96), "f32")
    assert kernel_of(Op("silu", (x,), (y,)), None) is kernel_of(CASES["silu"], None)


def test_what_cannot_be_computed_row_by_row_is_refused_with_a_reason() -> None:
    x, index = Value("x", (4, 8), "f32"), Value("index", (2,), "i32")
    active, chosen = Value("active", (4, 8), "f32"), Value("chosen", (2, 8), "f32")
    silu, gather = Op("silu", (x,), (active,)), Op("gather", (active, index), (chosen,))
    assert "gather takes rows of other strips" in str(refusal(fused((silu, gather), (chosen,))))
    gain, twice = Value("flat", (8,), "f32"), Value("twice", (4, 8), "f32")
    row, flat = Value("row", (1, 8), "f32"), Op("reshape", (Value("row", (1, 8), "f32"),), (gain,))
    body = (Op("silu", (Value("one", (1, 8), "f32"),), (row,)), flat, Op("add", (x, gain), (twice,)))
    assert "made row by row" in str(refusal(fused(body, (twice,))))
