"""What must lie on the chip at once while a fused operation runs, counted by hand."""

from dataclasses import replace

import pytest
from hybrid.compiler.fuse.room import has_room, working_set
from hybrid.npu_backends.ir.op import Op, fused
from hybrid.npu_backends.ir.value import Value
from hybrid.npu_backends.preset import load_preset
from hybrid.npu_backends.spec import Array, Spec

ROWS, INPUTS, OUTPUTS = 40, 64, 96
TILES = 4 * 16 * 8 + 2 * 32 * (16 + 8)  # of an array of 16 x 8: sums in 32 bits, operands of one group twice


@pytest.fixture(scope="module")
def spec() -> Spec:
    return replace(load_preset("systolic-32"), array=Array(16, 8))


def floats(name: str, *shape: int) -> Value:
    return Value(name, shape, "f32")


X, NORMED, Y, Z, OUT = (
    *(floats("x", ROWS, INPUTS), floats("normed", ROWS, INPUTS)),
    *(floats("y", ROWS, OUTPUTS), floats("z", ROWS, OUTPUTS), floats("out", ROWS, OUTPUTS)),
)
NORM = Op("rms_norm", (X, floats("gain", INPUTS)), (NORMED,), (("eps", 0.0),))
LINEAR = Op("linear", (NORMED, floats("weights", OUTPUTS, INPUTS)), (Y,))
ADD = Op("add", (Y, Z), (OUT,))


def test_a_norm_needs_whole_rows(spec: Spec) -> None:
    # while the norm runs, x, gain and the result; while the product runs, its inputs and outputs. The product is the larger
    assert working_set(fused((NORM, LINEAR), (Y,)), spec) == TILES + 4 * 16 * (INPUTS + OUTPUTS)


def test_a_sum_needs_two_tiles_of_each(spec: Spec) -> None:
    # while the product runs: rows of x and of y
    assert working_set(fused((LINEAR, ADD), (OUT,)), spec) == TILES + 3 * 2 * 4 * 16 * 8


def test_attention_takes_the_heads_that_share_keys_by_groups(spec: Spec) -> None:
    rows, heads, groups, dim, positions = 6, 4, 2, 16, 100
    keys, values = (Value(name, (groups, positions, dim), "f16") for name in ("keys", "values"))
    query, scores = floats("query", rows, heads, dim), floats("scores", rows, heads, positions)
    weights, mixed = floats("weights", rows, heads, positions), floats("mixed", rows, heads, dim)
    position = Value("position", (1,), "i32")
    body = (
        Op("scores", (query, keys, position), (scores,), (("scale", 1.0),)),
        Op("softmax", (scores, position), (weights,)),
        Op("mix", (weights, values, position), (mixed,)),
    )
    # 8 rows of tokens fill 16 rows of the array with two heads each, and there are 6; scores and weights of one group are the most
    assert working_set(fused(body, (mixed,)), spec) == TILES + 4 + 6 * 4 * 2 * (heads // groups) * positions


def test_what_is_larger_than_the_memory_is_refused(spec: Spec) -> None:
    op = fused((NORM, LINEAR), (Y,))
    assert has_room(op, replace(spec, sram=replace(spec.sram, bytes=working_set(op, spec))))
    assert not has_room(op, replace(spec, sram=replace(spec.sram, bytes=working_set(op, spec) - 1)))
