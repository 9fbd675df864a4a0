"""What only the native runtime does; the rest is in test_conformance.py."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hybrid.edge import native
from hybrid.edge.native import NativeRuntime
from hybrid.shared_protocol.errors import Cancelled, InvalidRequest
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.runtime import HiddenStates


@pytest.fixture
def tiny(tiny_llama: Model) -> NativeRuntime:
    return NativeRuntime(tiny_llama, context=64)


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


@pytest.mark.parametrize("rows", [0, 1, 5, 33, 45])
def test_hidden_states_come_with_the_same_logits_however_the_sequence_was_cut(tiny: NativeRuntime, rows: int) -> None:
    ids = [(i * 7919 + 11) % 320 for i in range(45)]
    _, every = tiny.extend_with_hidden(ids, rows=45)
    tiny.truncate(0)
    logits = tiny.extend(ids, rows=rows)
    for first in (0, 1, 13, 44):
        tiny.truncate(0)
        tiny.extend(ids[:first], rows=0)
        wanted = min(rows, 45 - first)
        found, states = tiny.extend_with_hidden(ids[first:], rows=wanted)
        np.testing.assert_array_equal(found, logits[rows - wanted :])
        np.testing.assert_array_equal(states, every[45 - wanted :])
        assert states.shape == (wanted, tiny.hidden_size)


def test_a_runtime_that_gives_hidden_states_says_so(tiny: NativeRuntime) -> None:
    assert isinstance(tiny, HiddenStates)
    for rows in (-1, 10**13):  # no room is made for states that cannot be
        with pytest.raises(InvalidRequest, match=f"rows must be between 0 and the 2 tokens fed, found {rows}"):
            tiny.extend_with_hidden([1, 2], rows=rows)
