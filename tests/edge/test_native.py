"""What only the native runtime does; the rest is in test_conformance.py."""

from __future__ import annotations

import threading

import pytest
from hybrid.edge import native
from hybrid.edge.native import NativeRuntime
from hybrid.shared_protocol.errors import Cancelled
from hybrid.shared_protocol.model import Model


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
