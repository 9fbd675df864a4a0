"""A graph that exists holds together; what does not is refused with the name at fault."""

import numpy as np
import pytest
from hybrid.npu_backends.ir.graph import Graph, subgraph
from hybrid.npu_backends.ir.interpret import interpret
from hybrid.npu_backends.ir.op import Op, fused
from hybrid.npu_backends.ir.value import Value
from hybrid.npu_backends.ir.work import Product, work_of
from hybrid.shared_protocol.compile_errors import GraphInvalid

X, GAIN, WEIGHTS = Value("x", (2, 4), "f32"), Value("gain", (4,), "f32"), Value("weights", (3, 4), "f32")
NORMED, Y, Z = Value("normed", (2, 4), "f32"), Value("y", (2, 3), "f32"), Value("z", (2, 3), "f32")
NORM = Op("rms_norm", (X, GAIN), (NORMED,), (("eps", 0.0),))
LINEAR = Op("linear", (NORMED, WEIGHTS), (Y,))
SILU = Op("silu", (Y,), (Z,))
CACHE, NEW, WHERE = Value("cache", (1, 4, 2), "f16"), Value("new", (2, 1, 2), "f32"), Value("where", (1,), "i32")
WRITTEN = Value("written", (1, 4, 2), "f16")


def chain(*ops: Op, outputs: tuple[Value, ...] = (Z,)) -> Graph:
    return Graph("chain", (X,), (GAIN, WEIGHTS), ops, outputs)


def arrays() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    weights = np.arange(12, dtype=np.float32).reshape(3, 4) - 6
    return {"gain": np.array([1, 2, 1, 1], np.float32), "weights": weights}, {"x": np.array([[3, 3, 3, 3], [1, -1, 1, -1]], np.float32)}


def test_a_graph_computes_what_its_operations_say() -> None:
    result = interpret(chain(NORM, LINEAR, outputs=(Y,)), *arrays())["y"]
    # a norm of equal magnitudes leaves the signs; the gain doubles the second: [1, 2, 1, 1] and [1, -2, 1, -1] times the rows of weights
    np.testing.assert_array_equal(result, np.array([[-23, -3, 17], [3, -1, -5]], np.float32))


def test_a_fused_operation_computes_the_same_and_has_the_bytes_of_its_outside_only() -> None:
    plain, joined = chain(NORM, LINEAR, SILU), chain(fused((NORM, LINEAR, SILU), (Z,)))
    np.testing.assert_array_equal(interpret(plain, *arrays())["z"], interpret(joined, *arrays())["z"])
    work = work_of(joined.ops[0])
    assert (work.product, work.bytes_in, work.bytes_weights, work.bytes_out) == (Product(2, 3, 4), 32, 64, 24)


def test_a_part_of_a_graph_is_a_graph_with_what_crosses_its_border() -> None:
    part = subgraph(chain(NORM, LINEAR, SILU), "part", [LINEAR])
    assert (part.inputs, part.constants, part.outputs) == ((NORMED,), (WEIGHTS,), (Y,))


@pytest.mark.parametrize(
    ("ops", "told"),
    [
        ((LINEAR, SILU), "before it"),
        ((NORM, LINEAR, SILU, SILU), "made twice"),
        ((NORM, Op("linear", (NORMED, GAIN), (Y,)), SILU), "takes"),
        ((NORM, LINEAR, Op("relu", (Y,), (Z,))), "no operation 'relu'"),
        ((NORM, LINEAR, Op("silu", (Y,), (Z,), (("cap", 1),))), "no attribute 'cap'"),
        ((NORM, LINEAR, Op("silu", (Y,), (Value("z", (3, 2), "f32"),))), "it makes"),
        ((NORM, LINEAR), "is not made"),
    ],
)
def test_what_does_not_hold_together_is_refused(ops: tuple[Op, ...], told: str) -> None:
    with pytest.raises(GraphInvalid, match=told):
        chain(*ops)


def test_a_cache_is_not_read_after_it_was_overwritten() -> None:
    write = Op("cache_write", (CACHE, NEW, WHERE), (WRITTEN,))
    graph = Graph("g", (CACHE, NEW, WHERE), (), (write,), (WRITTEN,), states=(("cache", "written"),))
    cache = np.zeros((1, 4, 2), np.float16)
    found = interpret(graph, {}, {"cache": cache, "new": np.ones((2, 1, 2), np.float32), "where": np.array([1], np.int32)})["written"]
    assert found[0, :, 0].tolist() == [0, 1, 1, 0] and not cache.any()
    read = Op("reshape", (CACHE,), (Value("flat", (8,), "f16"),))
    with pytest.raises(GraphInvalid, match="after it was overwritten"):
        Graph("g", (CACHE, NEW, WHERE), (), (write, read), (WRITTEN,))


@pytest.mark.parametrize(("name", "shape", "dtype"), [("a b", (1,), "f32"), ("", (1,), "f32"), ("a", (0,), "f32"), ("a", (1,), "f64")])
def test_a_value_has_a_name_sizes_and_a_known_type(name: str, shape: tuple[int, ...], dtype: str) -> None:
    with pytest.raises(GraphInvalid):
        Value(name, shape, dtype)  # type: ignore[arg-type]
