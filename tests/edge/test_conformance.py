"""Every runtime of the device keeps the same promises."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hybrid.edge.cost_curve import REPEATS
from hybrid.shared_protocol.errors import Cancelled, ContextOverflow, EngineFailed, InvalidRequest, RuntimeClosed
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.runtime import EdgeRuntime
from hybrid.tests.edge.conformance import KINDS, Kind, Ticks

IDS = [(i * 7919 + 11) % 320 for i in range(45)]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture(scope="module")
def opened(kind: Kind, tiny_llama: Model) -> Iterator[EdgeRuntime]:
    runtime = kind.open(tiny_llama)
    yield runtime
    runtime.close()


@pytest.fixture
def tiny(opened: EdgeRuntime) -> EdgeRuntime:
    opened.truncate(0)
    return opened


@pytest.fixture(scope="module")
def real(kind: Kind, smollm2: Model) -> Iterator[EdgeRuntime]:
    runtime = kind.open(kind.of(smollm2), context=128)
    yield runtime
    runtime.close()


@pytest.mark.parametrize("size", ["tiny", "real"])
def test_logits_do_not_depend_on_how_the_sequence_was_fed(kind: Kind, size: str, request: pytest.FixtureRequest) -> None:
    runtime: EdgeRuntime = request.getfixturevalue(size)
    runtime.truncate(0)
    whole = runtime.extend(IDS, rows=len(IDS))
    assert whole.shape == (45, runtime.card.vocab_size)
    assert np.isfinite(whole).all()
    for sizes in ([1] * 3 + [42], [32, 13], [44, 1]):
        runtime.truncate(0)
        at, rows = 0, []
        for count in sizes:
            rows.append(runtime.extend(IDS[at : at + count], rows=count))
            at += count
        kind.assert_same(np.concatenate(rows), whole)


@pytest.mark.parametrize("size", ["tiny", "real"])
def test_rejected_tokens_leave_no_trace(kind: Kind, size: str, request: pytest.FixtureRequest) -> None:
    runtime: EdgeRuntime = request.getfixturevalue(size)
    runtime.truncate(0)
    runtime.extend(IDS[:35], rows=0)
    clean = runtime.extend(IDS[35:38], rows=3)
    runtime.truncate(35)
    runtime.extend([5, 6, 7, 8, 9, 10], rows=1)
    runtime.truncate(35)
    np.testing.assert_array_equal(runtime.extend(IDS[35:38], rows=3), clean)  # the same calls on the same past: equal for all


def test_the_last_rows_are_returned(kind: Kind, tiny: EdgeRuntime) -> None:
    whole = tiny.extend(IDS, rows=45)
    for rows in (0, 1, 13, 14, 40):
        tiny.truncate(0)
        kind.assert_same(tiny.extend(IDS, rows=rows), whole[45 - rows :])
    assert tiny.extend([], rows=0).shape == (0, 320)


def test_rows_that_are_returned_stay_as_they_are(tiny: EdgeRuntime) -> None:
    first = tiny.extend([1])
    before = first.copy()
    tiny.extend([2, 3], rows=2)
    np.testing.assert_array_equal(first, before)


def test_more_than_the_context_is_refused_and_what_is_held_stays(kind: Kind, tiny: EdgeRuntime) -> None:
    expected = tiny.extend([1] * 60)
    with pytest.raises(ContextOverflow) as error:
        tiny.extend([1] * 5)
    assert (error.value.asked, error.value.limit) == (65, 64)
    assert tiny.length == 60
    tiny.extend([1] * 4)
    assert tiny.length == 64
    tiny.truncate(59)
    kind.assert_same(tiny.extend([1]), expected)


@pytest.mark.parametrize("ids", [[-1], [320], [0, 99999999], [2**31], [2**70], [1, None], ["a"], [[1, 2]]])
def test_what_is_no_token_id_is_refused(tiny: EdgeRuntime, ids: list[int]) -> None:
    with pytest.raises(InvalidRequest, match="319"):
        tiny.extend(ids)
    assert tiny.length == 0


def test_rows_and_lengths_that_do_not_exist_are_refused(tiny: EdgeRuntime) -> None:
    tiny.extend([7])
    for rows in (-1, 2):
        with pytest.raises(InvalidRequest):
            tiny.extend([1], rows=rows)
    for length in (-1, 2):
        with pytest.raises(InvalidRequest):
            tiny.truncate(length)
    assert tiny.length == 1


def test_a_cancellation_before_the_work_ends_the_next_extend_only(tiny: EdgeRuntime) -> None:
    tiny.extend([3, 4], rows=0)
    tiny.cancel()
    tiny.cancel()
    with pytest.raises(Cancelled):
        tiny.extend([], rows=0)
    tiny.cancel()
    with pytest.raises(Cancelled):
        tiny.extend([1, 2])
    assert tiny.length == 2
    tiny.extend([1])
    assert tiny.length == 3


def test_cancelling_from_another_thread_whenever_it_comes_holds_nothing(kind: Kind, tiny: EdgeRuntime) -> None:
    done = threading.Event()

    def cancel_all_the_time() -> None:
        while not done.is_set():
            tiny.cancel()

    expected = tiny.extend([9, 8, 7])
    thread = threading.Thread(target=cancel_all_the_time)
    thread.start()
    try:
        tiny.cancel()
        for count in (1, 40, 61):
            with pytest.raises(Cancelled):
                while True:
                    tiny.extend([1] * count)
                    tiny.truncate(3)
            assert tiny.length == 3
    finally:
        done.set()
        thread.join()
    tiny.cancel()
    with pytest.raises(Cancelled):
        tiny.extend([1])
    tiny.truncate(2)
    kind.assert_same(tiny.extend([7]), expected)


def test_a_closed_runtime_says_so_and_may_be_closed_again(kind: Kind, tiny_llama: Model) -> None:
    runtime = kind.open(tiny_llama)
    runtime.extend([1])
    runtime.close()
    runtime.close()
    runtime.cancel()
    for use in (
        lambda: runtime.extend([1]),
        lambda: runtime.extend([], rows=0),
        lambda: runtime.truncate(0),
        lambda: runtime.cost_curve(1),
    ):
        with pytest.raises(RuntimeClosed):
            use()
    assert runtime.memory().kv == 0


def test_closing_from_another_thread_ends_the_work_with_a_typed_error(kind: Kind, tiny_llama: Model) -> None:
    runtime = kind.open(tiny_llama)
    working, ends = threading.Event(), []

    def work() -> None:
        try:
            while True:
                runtime.truncate(0)
                runtime.extend(IDS)
                working.set()
        except Exception as error:
            ends.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert working.wait(60)
    runtime.close()
    thread.join(60)
    assert [type(end) for end in ends] == [RuntimeClosed]


def test_a_runtime_that_was_opened_before_a_fork_says_so_in_the_child(tiny: EdgeRuntime) -> None:
    tiny.extend([1, 2])
    child = os.fork()
    if child == 0:
        end = 1
        try:
            tiny.extend([3])
        except EngineFailed as error:
            end = 0 if "before a fork" in str(error) else 2
        finally:
            os._exit(end)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tiny.length == 2


def test_memory_is_what_weights_and_context_ask_for(kind: Kind, tiny_llama: Model, real: EdgeRuntime) -> None:
    small, large = kind.open(tiny_llama, context=64), kind.open(tiny_llama, context=512)
    assert 0 < small.memory().kv < large.memory().kv
    small.close()
    large.close()
    memory, card = real.memory(), real.card
    assert 0.8 * card.file_bytes < memory.weights < 2 * card.file_bytes
    # 3 heads of 64 values a layer, keys and values, at least two bytes each; cells are rounded up
    assert 128 * kind.layers * 3 * 64 * 2 * 2 <= memory.kv <= 512 * kind.layers * 3 * 64 * 2 * 4
    assert memory.scratch > 0
    assert memory.peak > memory.kv


def test_a_context_that_the_model_does_not_have_is_refused(kind: Kind, tiny_llama: Model) -> None:
    for context in (0, -1, tiny_llama.card.context_length + 1):
        with pytest.raises(InvalidRequest, match="context must be between 1 and the model's 512 tokens"):
            kind.open(tiny_llama, context=context)
    runtime = kind.make(tiny_llama)
    assert runtime.context == tiny_llama.card.context_length
    runtime.close()


def test_the_cost_curve_is_measured_once_and_leaves_the_sequence_as_it_was(kind: Kind, tiny_llama: Model, tmp_path: Path) -> None:
    if not kind.measured:
        pytest.skip(f"the cost curve of {kind.name} is computed, not measured: tests/edge/npu asks for it")
    ticks = Ticks()
    runtime = kind.open(tiny_llama, clock=ticks, curves=tmp_path)
    expected = runtime.extend([1, 2, 3])
    assert runtime.cost_curve(4).tolist() == [0.0, 1000.0, 1000.0, 1000.0, 1000.0]
    assert ticks.looks == 4 * REPEATS * 2
    assert runtime.length == 3
    runtime.truncate(2)
    kind.assert_same(runtime.extend([3]), expected)
    assert runtime.cost_curve(2).tolist() == [0.0, 1000.0, 1000.0]
    assert ticks.looks == 4 * REPEATS * 2  # nothing was measured again
    runtime.extend([1] * 58, rows=0)
    with pytest.raises(ContextOverflow):
        runtime.cost_curve(6)
    assert runtime.length == 61
    runtime.close()
    later = Ticks()
    again = kind.open(tiny_llama, clock=later, curves=tmp_path)
    assert again.cost_curve(4).tolist() == [0.0, 1000.0, 1000.0, 1000.0, 1000.0]
    assert later.looks == 0  # it was on the disk
    again.close()
