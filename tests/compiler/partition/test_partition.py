"""The cut is the cheapest one, its segments compute what the graph does, and nothing is refused in silence."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.partition.exhaustive import cheapest
from hybrid.compiler.partition.partition import Partition, partition
from hybrid.compiler.partition.problem import Refusal
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.interpret import interpret
from hybrid.npu_backends.ir.op import Op
from hybrid.npu_backends.ir.value import Value
from hybrid.shared_protocol.compile_errors import CompileError, OperationRefused
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.chips import Priced, PricedChips, random_chips
from hybrid.tests.support.graphs import random_arrays, random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

CHIPS = (("npu", "cpu"), ("npu", "dsp", "cpu"))
SOURCE, HOST = st.randoms(use_true_random=False), st.sampled_from((None, "cpu", "npu"))


@settings(max_examples=60)
@given(source=SOURCE, ops=st.integers(1, 6), names=st.sampled_from(CHIPS), host=HOST)
def test_no_cut_is_cheaper(source: random.Random, ops: int, names: Sequence[str], host: str | None) -> None:
    graph = random_graph(source, ops)
    priced = random_chips(source, graph, names)
    found = partition(graph, priced.chips, **priced.how, host=host)
    assert found.exact
    assert found.seconds == cheapest(graph, priced.chips, **priced.how, host=host)


@settings(max_examples=40)
@given(source=SOURCE, ops=st.integers(1, 16))
def test_segments_compute_what_the_graph_does(source: random.Random, ops: int) -> None:
    graph = random_graph(source, ops)
    priced = random_chips(source, graph, ("npu", "cpu"))
    found = partition(graph, priced.chips, **priced.how, host="cpu")
    assert tuple(op for segment in found.segments for op in segment.graph.ops) == graph.ops
    assert all(one.chip != other.chip for one, other in zip(found.segments, found.segments[1:], strict=False))
    constants, inputs = random_arrays(graph)
    known = dict(inputs)
    for segment in found.segments:
        known |= interpret(segment.graph, constants, known)
    for name, array in interpret(graph, constants, inputs).items():
        np.testing.assert_array_equal(known[name], array)


@settings(max_examples=40)
@given(source=SOURCE, ops=st.integers(1, 16))
def test_every_refusal_is_told_with_its_reason(source: random.Random, ops: int) -> None:
    graph = random_graph(source, ops)
    priced = random_chips(source, graph, ("npu", "dsp", "cpu"))
    found = partition(graph, priced.chips, **priced.how)
    told = {(refusal.op, refusal.chip): refusal.reason for refusal in found.refused}
    assert told == {(op.name, chip.name): chip.prices[op.name] for op in graph.ops for chip in priced.chips if chip.refuses(op)}
    assert all((op.name, segment.chip) not in told for segment in found.segments for op in segment.graph.ops)
    assert len(told) == len(found.refused)


# x -- a -- b -- c -- out, and a is read by c too
X, A, B, C = (Value(name, (1, 4), "f32") for name in "xabc")
CHAIN = Graph("chain", (X,), (), (Op("silu", (X,), (A,)), Op("silu", (A,), (B,)), Op("add", (B, A), (C,))), (C,))


def cut(graph: Graph, npu: Sequence[float | str], cpu: Sequence[float | str], move: float, launch: float, host: str | None) -> Partition:
    names = [op.name for op in graph.ops]
    chips = (Priced("npu", dict(zip(names, npu, strict=True))), Priced("cpu", dict(zip(names, cpu, strict=True))))
    moves = {(value.name, one, other): move for value in graph.values() for one in ("npu", "cpu") for other in ("npu", "cpu")}
    priced = PricedChips(chips, moves, {"npu": launch, "cpu": 0.0})
    return partition(graph, chips, **priced.how, host=host)


def test_a_value_is_moved_once_to_a_chip_that_reads_it_twice() -> None:
    found = cut(CHAIN, [1.0, 90.0, 90.0], [90.0, 1.0, 1.0], move=5, launch=2, host="cpu")
    assert [segment.chip for segment in found.segments] == ["npu", "cpu"]
    moved = [[(transfer.value, transfer.target, transfer.bytes) for transfer in spent.arrivals] for spent in found.spent]
    assert moved == [[("x", "npu", 16)], [("a", "cpu", 16)]]
    assert found.seconds == (1 + 2 + 5) + (1 + 1 + 5)
    assert found.seconds_on == {"npu": 3, "cpu": 2}
    assert [(spent.bytes_in, spent.bytes_out) for spent in found.spent] == [(16, 16), (16, 16)]


def test_a_chip_is_left_alone_when_the_way_to_it_costs_more_than_it_saves() -> None:
    # 89 seconds saved on the first operation: 40 to go there, 40 to come back, 8 to start; or 10
    assert len(cut(CHAIN, [1.0, 90.0, 90.0], [90.0, 1.0, 1.0], move=40, launch=8, host="cpu").segments) == 2
    assert len(cut(CHAIN, [1.0, 90.0, 90.0], [90.0, 1.0, 1.0], move=40, launch=10, host="cpu").segments) == 1


def test_outputs_come_back_to_the_host() -> None:
    found = cut(CHAIN, [1.0, 1.0, 1.0], ["no", "no", "no"], move=5, launch=2, host="cpu")
    assert ([transfer.value for transfer in found.returned], found.seconds) == (["c"], 3 + 2 + 5 + 5)
    assert cut(CHAIN, [1.0, 1.0, 1.0], ["no", "no", "no"], move=5, launch=2, host=None).seconds == 3 + 2


def test_a_state_stays_on_the_chip_that_overwrites_it() -> None:
    position, cache, after = Value("position", (1,), "i32"), Value("cache", (1, 4, 2), "f32"), Value("after", (1, 4, 2), "f32")
    key, seen = Value("key", (1, 1, 2), "f32"), Value("seen", (1, 4, 2), "f32")
    ops = (Op("silu", (cache,), (seen,)), Op("cache_write", (cache, key, position), (after,)))
    graph = Graph("g", (key, cache, position), (), ops, (seen, after), (("cache", "after"),))
    # it is read before on the other chip, and so moved there; written where it is, and not moved back
    found = cut(graph, ["no", 1.0], [1.0, "no"], move=5, launch=2, host=None)
    assert [transfer.value for spent in found.spent for transfer in spent.arrivals] == ["cache"]
    assert found.seconds == 1 + 5 + 1 + 2
    # worth 4 seconds, it is written where it is read
    assert [segment.chip for segment in cut(graph, [9.0, 1.0], [1.0, 5.0], move=5, launch=2, host=None).segments] == ["cpu"]


@settings(max_examples=60)
@given(source=SOURCE, names=st.sampled_from(CHIPS), host=HOST)
def test_no_cut_is_cheaper_where_states_are_read_before_they_are_overwritten(
    source: random.Random, names: Sequence[str], host: str | None
) -> None:
    position, key = Value("position", (1,), "i32"), Value("key", (1, 1, 2), "f32")
    states = [(Value(f"cache.{number}", (1, 4, 2), "f32"), Value(f"after.{number}", (1, 4, 2), "f32")) for number in range(2)]
    reads = [
        Op("silu", (before,), (Value(f"seen.{number}.{before.name}", (1, 4, 2), "f32"),)) for number in range(2) for before, _ in states
    ]
    writes = [Op("cache_write", (before, key, position), (after,)) for before, after in states]
    ops = (*reads, *writes)
    outputs = tuple(value for op in ops for value in op.outputs)
    graph = Graph("g", (key, position, *(b for b, _ in states)), (), ops, outputs, tuple((b.name, a.name) for b, a in states))
    priced = random_chips(source, graph, names)
    found = partition(graph, priced.chips, **priced.how, host=host)
    assert found.seconds == cheapest(graph, priced.chips, **priced.how, host=host)


def test_an_operation_that_no_chip_takes_is_named_with_all_reasons() -> None:
    with pytest.raises(OperationRefused, match=r"silu b: npu: no lanes; cpu: room for less") as refused:
        cut(CHAIN, [1.0, "no lanes", 1.0], [1.0, "room for less", 1.0], move=1, launch=1, host=None)
    assert refused.value.reasons == {"npu": "no lanes", "cpu": "room for less"}


def test_a_refusal_is_told_also_of_what_another_chip_takes() -> None:
    found = cut(CHAIN, ["no lanes", "no lanes", 1.0], [1.0, 1.0, 1.0], move=1, launch=1, host=None)
    assert found.refused == tuple(Refusal(name, "silu", "npu", "no lanes") for name in "ab")


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -1.0])
def test_a_price_that_is_none_is_refused(price: float) -> None:
    with pytest.raises(CompileError, match=r"silu b on npu is said to take"):
        cut(CHAIN, [1.0, price, 1.0], [1.0, 1.0, 1.0], move=1, launch=1, host=None)


def test_where_too_much_is_to_be_held_the_answer_is_said_to_be_unproved() -> None:
    worse = 0
    for seed in range(20):
        graph = random_graph(random.Random(seed), 14)
        priced = random_chips(random.Random(seed), graph, ("npu", "dsp", "cpu"))
        best, narrow = (partition(graph, priced.chips, **priced.how, host="cpu", limit=limit) for limit in (20_000, 1))
        assert best.exact and best.seconds <= narrow.seconds
        assert narrow.exact == (narrow.widest == 1)
        worse += best.seconds < narrow.seconds
    assert worse > 0


def test_a_real_graph_is_cut_exactly_with_few_states(smollm2: Model) -> None:
    graph = capture(smollm2.architecture, rows=1, logit_rows=1, context=1024, name="decode")
    priced = random_chips(random.Random(0), graph, ("npu", "cpu"))
    found = partition(graph, priced.chips, **priced.how, host="cpu")
    assert (len(graph.ops), found.exact) == (724, True)
    assert found.widest < 100
