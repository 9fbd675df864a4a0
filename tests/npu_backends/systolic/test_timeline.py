"""Work on engines side by side, and transfers behind two buffers."""

import json

import pytest
from hybrid.npu_backends.spec import Memory
from hybrid.npu_backends.systolic.dma import Step, double_buffered, tasks_of, transfer_cycles
from hybrid.npu_backends.systolic.pipeline import Counted, Stage, cycles_of
from hybrid.npu_backends.systolic.timeline import ENGINES, Task, chrome_trace, schedule
from hybrid.shared_protocol.errors import InvalidRequest
from hypothesis import given, settings
from hypothesis import strategies as st

STEPS = st.lists(st.builds(Step, st.integers(0, 30), st.integers(0, 30), st.integers(0, 30)), max_size=12)


@st.composite
def programs(draw: st.DrawFn) -> list[Task]:
    tasks = []
    for index in range(draw(st.integers(0, 14))):
        after = draw(st.lists(st.integers(0, index - 1), max_size=3)) if index else []
        tasks.append(Task(f"t{index}", draw(st.sampled_from(ENGINES)), draw(st.integers(0, 20)), tuple(after)))
    return tasks


@settings(max_examples=40, deadline=None)
@given(programs())
def test_every_task_waits_for_what_it_needs_and_no_engine_does_two_things_at_once(tasks: list[Task]) -> None:
    timeline = schedule(tasks)
    ends = timeline.ends
    for index, task in enumerate(tasks):
        assert all(ends[other] <= timeline.starts[index] for other in task.after)
        on_same = [other for other in range(index) if tasks[other].engine == task.engine]
        assert all(ends[other] <= timeline.starts[index] for other in on_same)
        waits = [ends[other] for other in (*task.after, *on_same)]
        assert timeline.starts[index] == max(waits, default=0)  # and for nothing else
    assert timeline.busy == {engine: sum(task.cycles for task in tasks if task.engine == engine) for engine in ENGINES}
    assert max(timeline.busy.values()) <= timeline.cycles <= sum(task.cycles for task in tasks)


@settings(max_examples=40, deadline=None)
@given(programs(), st.data())
def test_a_task_that_takes_longer_ends_nothing_earlier(tasks: list[Task], data: st.DataObject) -> None:
    if not tasks:
        return
    slow = data.draw(st.integers(0, len(tasks) - 1))
    longer = [Task(task.name, task.engine, task.cycles + 5 * (index == slow), task.after) for index, task in enumerate(tasks)]
    assert all(after >= before for before, after in zip(schedule(tasks).ends, schedule(longer).ends, strict=True))


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_the_closed_form_of_two_buffers_is_what_the_timeline_of_its_steps_takes(steps: list[Step]) -> None:
    timeline = schedule(tasks_of(steps))
    assert timeline.cycles == double_buffered(steps)
    assert timeline.busy["array"] == sum(step.compute for step in steps)


def test_two_buffers_hide_the_shorter_of_load_and_compute() -> None:
    # worked out by hand: the first load, then 10 against 8, 10 against 8 beside a store of 3, 10 beside a store, the last store
    assert double_buffered([Step(8, 10, 3)] * 3) == 8 + 10 + 10 + 10 + 3
    assert double_buffered([Step(20, 10, 3)] * 3) == 20 + 20 + 20 + 10 + 3
    assert double_buffered([]) == 0


def test_the_part_of_the_transfers_that_costs_no_time() -> None:
    # as above: 33 cycles of transfers and 30 of products take 41, so 22 of the 33 pass beside something else
    stages = (Stage(8, 10, 0, 3),) * 3
    assert Counted(stages, False, cycles_of(stages), 0, 0, 0).hidden_dma == pytest.approx(22 / 33)
    assert Counted(stages[:1], False, cycles_of(stages[:1]), 0, 0, 0).hidden_dma == 0.0
    computes = (Stage(0, 10, 5, 0),)
    assert Counted(computes, False, cycles_of(computes), 0, 0, 0).hidden_dma == 1.0


def test_a_transfer_waits_for_its_latency_once_and_moves_whole_bursts() -> None:
    dram = Memory("dram", 1 << 30, 12.0, 500, 128, 64)
    slow = Memory("dram", 1 << 30, 7.5, 500, 128, 24)  # sustains 6.144
    sram = Memory("sram", 1 << 19, 32.0, 32, 64, 16)
    assert transfer_cycles(0, dram, sram) == 0
    assert transfer_cycles(12_800, dram, sram) == 500 + 1067  # 12,800 / 12 = 1,066.7
    assert transfer_cycles(12_801, dram, sram) == 500 + 1078  # one more burst: 12,928 / 12 = 1,077.3
    assert transfer_cycles(6_144_000, slow, sram) == 500 + 1_000_000
    assert transfer_cycles(12_800, sram, dram) == 32 + 1067


def test_a_trace_names_each_engine_and_counts_microseconds_of_the_chip() -> None:
    timeline = schedule([Task("load", "dma_in", 500), Task("multiply", "array", 1000, (0,))])
    trace = json.loads(chrome_trace(timeline, clock_hz=5e8, title="a chip"))
    named = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    pieces = [(event["name"], named[event["tid"]], event["ts"], event["dur"]) for event in trace["traceEvents"] if event["ph"] == "X"]
    assert pieces == [("load", "dma_in", 0.0, 1.0), ("multiply", "array", 1.0, 2.0)]


@pytest.mark.parametrize(
    "tasks",
    [[Task("a", "gpu", 1)], [Task("a", "array", -1)], [Task("a", "array", 1, (0,))], [Task("a", "array", 1), Task("b", "cpu", 1, (-1,))]],
)
def test_a_program_that_cannot_run_is_refused(tasks: list[Task]) -> None:
    with pytest.raises(InvalidRequest):
        schedule(tasks)
