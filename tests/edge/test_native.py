"""The native runtime: one sequence on the real model (equalities), and on a tiny one (bookkeeping)."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hybrid.edge import native
from hybrid.edge.native import NativeRuntime
from hybrid.shared_protocol.errors import Cancelled, ContextOverflow, InvalidRequest
from hybrid.shared_protocol.model import Model

IDS = [(i * 7919 + 11) % 49152 for i in range(45)]


@pytest.fixture(scope="module")
def runtime(smollm2: Model) -> Iterator[NativeRuntime]:
    runtime = NativeRuntime(smollm2, context=128)
    yield runtime
    runtime.close()


@pytest.fixture
def tiny(tiny_llama: Model) -> Iterator[NativeRuntime]:
    runtime = NativeRuntime(tiny_llama, context=64)
    yield runtime
    runtime.close()


def test_logits_do_not_depend_on_how_the_sequence_was_fed(runtime: NativeRuntime) -> None:
    runtime.truncate(0)
    whole = runtime.extend(IDS, rows=len(IDS))
    assert whole.shape == (45, 49152)
    assert whole.dtype == np.float32
    for sizes in ([1] * 3 + [42], [32, 13], [44, 1]):
        runtime.truncate(0)
        at, rows = 0, []
        for size in sizes:
            rows.append(runtime.extend(IDS[at : at + size], rows=size))
            at += size
        np.testing.assert_array_equal(np.concatenate(rows), whole)


def test_rejected_tokens_leave_no_trace(runtime: NativeRuntime) -> None:
    runtime.truncate(0)
    runtime.extend(IDS[:35], rows=0)
    clean = runtime.extend(IDS[35:38], rows=3)
    runtime.truncate(35)
    runtime.extend([5, 6, 7, 8, 9, 10], rows=1)
    runtime.truncate(35)
    np.testing.assert_array_equal(runtime.extend(IDS[35:38], rows=3), clean)


def test_the_last_rows_are_returned_whatever_chunks_they_lie_in(runtime: NativeRuntime) -> None:
    runtime.truncate(0)
    whole = runtime.extend(IDS, rows=45)
    for rows in (0, 13, 14, 40):
        runtime.truncate(0)
        np.testing.assert_array_equal(runtime.extend(IDS, rows=rows), whole[45 - rows :])


def test_more_than_the_context_is_refused_and_nothing_is_held(tiny: NativeRuntime) -> None:
    tiny.extend([1] * 60, rows=0)
    with pytest.raises(ContextOverflow) as error:
        tiny.extend([1] * 5)
    assert (error.value.asked, error.value.limit) == (65, 64)
    assert tiny.length == 60
    tiny.extend([1] * 4)
    assert tiny.length == 64


@pytest.mark.parametrize("ids", [[-1], [320], [0, 99999999]])
def test_ids_outside_the_vocabulary_are_refused(tiny: NativeRuntime, ids: list[int]) -> None:
    with pytest.raises(InvalidRequest, match="319"):
        tiny.extend(ids)
    assert tiny.length == 0


def test_rows_and_lengths_that_do_not_exist_are_refused(tiny: NativeRuntime) -> None:
    with pytest.raises(InvalidRequest):
        tiny.extend([1], rows=2)
    with pytest.raises(InvalidRequest):
        tiny.truncate(1)
    assert tiny.extend([], rows=0).shape == (0, 320)


def test_a_cancelled_extend_ends_after_its_chunk_and_holds_nothing(tiny: NativeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    step = tiny._step

    def counted(*args: object) -> object:
        nonlocal steps
        steps += 1
        if steps == 2:
            thread = threading.Thread(target=tiny.cancel)
            thread.start()
            thread.join()
        return step(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(native, "CHUNK", 8)
    monkeypatch.setattr(tiny, "_step", counted)
    with pytest.raises(Cancelled):
        tiny.extend([1] * 50)
    assert steps == 2
    assert tiny.length == 0
    tiny.extend([1] * 50)  # one cancellation ends one extend
    assert tiny.length == 50


def test_a_cancellation_before_the_work_ends_the_next_extend(tiny: NativeRuntime) -> None:
    tiny.cancel()
    with pytest.raises(Cancelled):
        tiny.extend([], rows=0)
    tiny.extend([1])


def test_the_cost_curve_is_measured_once_and_leaves_the_sequence_as_it_was(tiny_llama: Model) -> None:
    readings = iter(range(10_000))
    runtime = NativeRuntime(tiny_llama, context=64, clock=lambda: float(next(readings)))
    runtime.extend([1, 2, 3])
    assert runtime.cost_curve(4).tolist() == [0.0, 1000.0, 1000.0, 1000.0, 1000.0]
    used = next(readings)
    assert used == 4 * native.REPEATS * 2
    assert runtime.length == 3
    assert len(runtime.cost_curve(2)) == 3
    assert next(readings) == used + 1  # nothing was measured again
    runtime.extend([1] * 60, rows=0)
    with pytest.raises(ContextOverflow):
        runtime.cost_curve(6)
    assert runtime.length == 63
    runtime.close()


def test_memory_is_what_the_context_asks_for(tiny_llama: Model) -> None:
    small, large = NativeRuntime(tiny_llama, context=64), NativeRuntime(tiny_llama, context=128)
    assert large.memory().kv > small.memory().kv
    assert NativeRuntime(tiny_llama).context == min(native.DEFAULT_CONTEXT, tiny_llama.card.context_length)
    with pytest.raises(InvalidRequest):
        NativeRuntime(tiny_llama, context=tiny_llama.card.context_length + 1)
