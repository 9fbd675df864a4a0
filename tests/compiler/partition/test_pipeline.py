"""Segments of several runs side by side: nothing starts before what it waits for, and two buffers keep the slower chip at work."""

import random
from typing import Any

import pytest
from hybrid.compiler.partition.partition import Partition, partition
from hybrid.compiler.partition.pipeline import on_engines, pipelined_seconds, tasks, total_seconds
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.op import Op
from hybrid.npu_backends.ir.value import Value
from hybrid.npu_backends.systolic.timeline import schedule
from hybrid.tests.support.chips import Priced, PricedChips, random_chips
from hybrid.tests.support.graphs import random_graph

X, A, B, C = (Value(name, (1, 4), "f32") for name in "xabc")
STATE, AFTER, POSITION = Value("state", (1, 4, 4), "f32"), Value("after", (1, 4, 4), "f32"), Value("position", (1,), "i32")
KEY, SEEN = Value("key", (1, 1, 4), "f32"), Value("seen", (1, 4, 4), "f32")
CHAIN = Graph("chain", (X,), (), (Op("silu", (X,), (A,)), Op("silu", (A,), (B,)), Op("silu", (B,), (C,))), (C,))


def cut(graph: Graph, seconds: dict[str, tuple[str, float]], move: float = 0.0) -> Partition:
    """Each operation on its chip; transfers of inputs and outputs are free."""
    chips = tuple(
        Priced(name, {op: price if chip == name else "elsewhere" for op, (chip, price) in seconds.items()}) for name in ("npu", "cpu")
    )
    crossing = {value.name for op in graph.ops for value in op.outputs} - {value.name for value in graph.outputs}
    moves = {(v.name, a, b): move if v.name in crossing else 0.0 for v in graph.values() for a in ("npu", "cpu") for b in ("npu", "cpu")}
    priced: dict[str, Any] = PricedChips(chips, moves, {"npu": 0.0, "cpu": 0.0}).how
    return partition(graph, chips, **priced, host=None)


def test_one_run_is_one_segment_after_the_other() -> None:
    found = cut(CHAIN, {"a": ("npu", 3), "b": ("cpu", 5), "c": ("npu", 2)}, move=1)
    listed = tasks(found)
    assert [(task.name, task.lane, task.seconds, task.after) for task in listed] == [
        ("0.chain.0", "npu", 3, ()),
        ("0.a>cpu", "npu>cpu", 1, (0,)),
        ("0.chain.1", "cpu", 5, (1,)),
        ("0.b>npu", "cpu>npu", 1, (2,)),
        ("0.chain.2", "npu", 2, (3,)),
    ]
    assert total_seconds(listed) == found.seconds == 12


def test_further_runs_take_as_long_as_the_busiest_chip() -> None:
    # 3 + 2 on the npu beside 5 on the cpu, transfers beside both
    assert pipelined_seconds(cut(CHAIN, {"a": ("npu", 3), "b": ("cpu", 5), "c": ("npu", 2)}, move=1)) == 5
    assert pipelined_seconds(cut(CHAIN, {"a": ("npu", 3), "b": ("cpu", 1), "c": ("npu", 2)}, move=0)) == 5


def test_where_a_run_needs_what_the_last_one_gave_nothing_overlaps() -> None:
    found = cut(CHAIN, {"a": ("npu", 3), "b": ("cpu", 5), "c": ("npu", 2)}, move=1)
    assert pipelined_seconds(found, feedback=True) == found.seconds


def test_two_buffers_let_a_run_ahead_and_no_further() -> None:
    found = cut(CHAIN, {"a": ("npu", 1), "b": ("cpu", 10), "c": ("cpu", 1)}, move=1)
    listed = tasks(found, runs=4)
    numbers = {task.name: number for number, task in enumerate(listed)}
    # a of run 2 goes where a of run 0 was: when that has been moved. It is moved where that was moved: when it has been read
    assert numbers["0.a>cpu"] in listed[numbers["2.chain.0"]].after
    assert numbers["0.chain.1"] in listed[numbers["2.a>cpu"]].after
    assert not {numbers["0.a>cpu"], numbers["0.chain.1"]} & set(listed[numbers["1.chain.0"]].after)


def test_a_state_is_read_after_the_run_before_has_written_it() -> None:
    ops = (Op("cache_write", (STATE, KEY, POSITION), (AFTER,)), Op("silu", (AFTER,), (SEEN,)))
    graph = Graph("g", (STATE, KEY, POSITION), (), ops, (AFTER, SEEN), (("state", "after"),))
    listed = tasks(cut(graph, {"after": ("npu", 1), "seen": ("cpu", 2)}, move=1), runs=2)
    numbers = {task.name: number for number, task in enumerate(listed)}
    # written over once the run before has written it and moved what it wrote
    assert {numbers["0.g.0"], numbers["0.after>cpu"]} <= set(listed[numbers["1.g.0"]].after)


def test_a_state_is_written_over_once_it_has_been_moved_to_who_reads_it_as_it_was() -> None:
    ops = (Op("silu", (STATE,), (SEEN,)), Op("cache_write", (STATE, KEY, POSITION), (AFTER,)))
    graph = Graph("g", (STATE, KEY, POSITION), (), ops, (SEEN, AFTER), (("state", "after"),))
    listed = tasks(cut(graph, {"seen": ("cpu", 2), "after": ("npu", 1)}, move=1), runs=2)
    numbers = {task.name: number for number, task in enumerate(listed)}
    assert numbers["0.state>cpu"] in listed[numbers["0.g.1"]].after
    assert numbers["0.g.1"] in listed[numbers["1.state>cpu"]].after


@pytest.mark.parametrize("feedback", [False, True])
def test_tasks_of_any_graph_run_on_the_timeline(feedback: bool) -> None:
    for seed in range(15):
        graph = random_graph(random.Random(seed), 12)
        priced = random_chips(random.Random(seed), graph, ("npu", "cpu"))
        found = partition(graph, priced.chips, **priced.how, host="cpu")
        listed = tasks(found, runs=3, feedback=feedback)
        assert len(listed) == 3 * len(tasks(found))
        line = schedule(on_engines(listed, clock_hz=1.0, host="cpu"))
        assert line.cycles == total_seconds(listed) <= 3 * found.seconds
        assert sum(line.busy.values()) == 3 * found.seconds
        assert total_seconds(tasks(found)) <= found.seconds
        if feedback:
            assert total_seconds(listed) == 3 * total_seconds(tasks(found))
