"""What is joined, what is not, and that joining never changes a bit."""

import random
from collections import Counter

import numpy as np
import pytest
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.capture.constants import constants_of
from hybrid.compiler.fuse.fuse import fuse
from hybrid.compiler.fuse.rules import ATTENTION, PRODUCTS, describe
from hybrid.compiler.fuse.saved import saved
from hybrid.compiler.fuse.traffic import traffic
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.interpret import interpret
from hybrid.npu_backends.ir.op import Op, flat
from hybrid.npu_backends.ir.value import Value
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.graphs import random_arrays, random_graph
from hybrid.tests.support.networks import FAMILIES, random_network
from hypothesis import given, settings
from hypothesis import strategies as st


def always(op: Op) -> bool:
    return True


def never(op: Op) -> bool:
    return False


def check_equal(before: Graph, after: Graph, constants: dict, inputs: dict) -> None:
    """Same names, same bits."""
    assert (before.inputs, before.outputs, before.states) == (after.inputs, after.outputs, after.states)
    wanted, found = interpret(before, constants, inputs), interpret(after, constants, inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(array, found[name])


@settings(max_examples=80)
@given(source=st.randoms(use_true_random=False), ops=st.integers(1, 24), refused=st.sampled_from((0.0, 0.3)))
def test_fusion_never_changes_a_value(source: random.Random, ops: int, refused: float) -> None:
    graph = random_graph(source, ops)
    joined = fuse(graph, lambda op: source.random() >= refused)
    check_equal(graph, joined, *random_arrays(graph))
    assert Counter(flat(joined.ops)) == Counter(graph.ops)
    assert sum(map(traffic, joined.ops)) <= sum(map(traffic, graph.ops))


@settings(max_examples=60)
@given(source=st.randoms(use_true_random=False), ops=st.integers(1, 24))
def test_there_is_one_product_in_a_fused_operation_but_for_attention(source: random.Random, ops: int) -> None:
    joined = fuse(random_graph(source, ops), always)
    for op in joined.ops:
        products = [inner.kind for inner in op.body if inner.kind in PRODUCTS]
        assert not op.body or len(products) == 1 or products == [ATTENTION[0], ATTENTION[2]]
    assert fuse(joined, always) == joined


def test_joins_are_those_that_the_chip_takes() -> None:
    for seed in range(20):
        graph = random_graph(random.Random(seed), 15)
        assert fuse(graph, never) == graph
        asked: list[Op] = []
        joined = fuse(graph, lambda op, asked=asked: asked.append(op) or len(op.body) < 4)
        assert all(op in asked and len(op.body) < 4 for op in joined.ops if op.body)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "gemma2"])
def test_a_captured_network_computes_the_same_bits(family: str, tiny_llama: Model) -> None:
    model = random_network(tiny_llama, **FAMILIES[family])
    for rows in (1, 6):
        graph = capture(model.architecture, rows=rows, logit_rows=1, context=16, name="step")
        rng = np.random.default_rng(1)
        inputs = {value.name: np.zeros(value.shape, np.float16) for value in graph.inputs if value.dtype == "f16"}
        inputs |= {"position": np.array([3], np.int32), "logit_index": np.array([rows - 1], np.int32)}
        inputs |= {"ids": rng.integers(0, 320, rows).astype(np.int32)}
        inputs |= {name: rng.standard_normal(array.shape).astype(np.float16) for name, array in inputs.items() if array.dtype == np.float16}
        joined = fuse(graph, always)
        check_equal(graph, joined, constants_of(model, graph), inputs)
        assert len(joined.ops) < len(graph.ops) / 2


def test_a_llama_layer_becomes_ten_operations(tiny_llama: Model) -> None:
    graph = capture(tiny_llama.architecture, rows=4, logit_rows=1, context=16, name="step")
    heads = ["linear + rotary", "linear + rotary", "linear", "cache_write", "cache_write", "attention", "linear + add + norm"]
    feed_forward = ["linear", "linear + silu + multiply", "linear + add + norm"]
    expected = ["embed", "norm + linear + rotary", *heads[1:], *feed_forward, *heads, *feed_forward[:2]]
    assert Counter(describe(op) for op in fuse(graph, always).ops) == Counter([*expected, "linear + add", "gather", "norm + linear"])


# x -- norm -- linear -- silu ---- add -- out
#        \------------ linear2 ---/
X, GAIN, WEIGHTS = Value("x", (2, 32), "f32"), Value("gain", (32,), "f32"), Value("weights", (32, 32), "f32")
NORMED, Y, Z, ACTIVE, OUT = (Value(name, (2, 32), "f32") for name in ("normed", "y", "z", "active", "out"))
NORM = Op("rms_norm", (X, GAIN), (NORMED,), (("eps", 0.0),))
LINEAR, LINEAR2 = Op("linear", (NORMED, WEIGHTS), (Y,)), Op("linear", (NORMED, WEIGHTS), (Z,))
SILU, ADD = Op("silu", (Y,), (ACTIVE,)), Op("add", (ACTIVE, Z), (OUT,))
STRIP = 2 * 32 * 4  # bytes of any of them


def test_a_value_that_others_read_becomes_an_output_and_the_bytes_saved_are_counted() -> None:
    graph = Graph("g", (X,), (GAIN, WEIGHTS), (NORM, LINEAR, LINEAR2, SILU, ADD), (OUT,))
    joined = fuse(graph, always)
    # the norm goes with the first product that it leads to, but then that product cannot wait for the second, which waits for the norm
    assert [describe(op) for op in joined.ops] == ["norm + linear", "linear + silu + add"]
    assert [value.name for value in joined.ops[0].outputs] == ["normed", "z"]
    # not read again: the norm's result by one product; not written and read: y, active
    assert [one.bytes for one in saved(joined)] == [STRIP, 2 * STRIP + 2 * STRIP]


def test_nothing_is_joined_that_would_wait_for_itself() -> None:
    # out = silu(y) + z with z = W normed(silu(y)): the sum waits for the second product, which waits for the first
    normed, z = Op("rms_norm", (ACTIVE, GAIN), (NORMED,), (("eps", 0.0),)), LINEAR2
    first = Op("linear", (X, WEIGHTS), (Y,))
    joined = fuse(Graph("g", (X,), (GAIN, WEIGHTS), (first, SILU, normed, z, ADD), (OUT,)), always)
    assert [describe(op) for op in joined.ops] == ["linear + silu + norm", "linear + add"]
    assert [value.name for value in joined.ops[0].outputs] == ["active", "normed"]


def test_a_cache_is_read_before_it_is_overwritten() -> None:
    position, cache = Value("position", (1,), "i32"), Value("cache", (1, 4, 2), "f16")
    query, key = Value("query", (1, 1, 2), "f32"), Value("key", (1, 1, 2), "f32")
    scores, weights, mixed = Value("scores", (1, 1, 4), "f32"), Value("weights", (1, 1, 4), "f32"), Value("mixed", (1, 1, 2), "f32")
    after, scored = Value("after", (1, 4, 2), "f16"), Value("scored", (1, 1, 4), "f32")
    ops = (
        Op("scores", (query, cache, position), (scores,), (("scale", 1.0),)),
        Op("cache_write", (cache, key, position), (after,)),
        Op("scores", (query, after, position), (scored,), (("scale", 1.0),)),
        Op("softmax", (scored, position), (weights,)),
        Op("mix", (weights, after, position), (mixed,)),
        Op("softmax", (scores, position), (Value("old", (1, 1, 4), "f32"),)),
    )
    outputs = (mixed, after, Value("old", (1, 1, 4), "f32"))
    joined = fuse(Graph("g", (query, key, cache, position), (), ops, outputs, (("cache", "after"),)), always)
    assert [describe(op) for op in joined.ops] == ["scores + softmax", "cache_write", "attention"]
