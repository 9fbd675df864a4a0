"""Every runtime of the device computes the same models, of every family."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hybrid.shared_protocol.errors import Cancelled, InvalidRequest
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.runtime import Snapshotting
from hybrid.tests.edge.conformance import KINDS, LLAMA_CPP, NATIVE, Kind
from hybrid.tests.support.tiny_families import write_tiny

IDS = [(i * 7919 + 11) % 320 for i in range(45)]


def test_all_runtimes_compute_the_same_model(smollm2: Model) -> None:
    """Those that keep the file's weights. A chip computes a model that was quantised once more: what that costs is measured and limited
    where it is done (compiler/quantise), and its runtime says that model to the bit (npu/test_runtime.py)."""
    logits = []
    for kind in (NATIVE, LLAMA_CPP):
        runtime = kind.open(smollm2)
        logits.append(runtime.extend(IDS, rows=len(IDS)))
        runtime.close()
    for other in logits[1:]:  # each rounds activations in its own way
        assert np.abs(other - logits[0]).max() < 0.5 * logits[0].std()
        assert (other.argmax(1) == logits[0].argmax(1)).mean() > 0.8


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("family", ["gemma2", "gemma3", "phi3-window", "qwen2", "qwen3"])
def test_every_family_can_go_back_also_past_its_window(kind: Kind, family: str, tmp_path: Path) -> None:
    """Windows of 24 tokens: after 60, a cache that kept no more could not go back to 10."""
    model = load_model(write_tiny(tmp_path / "tiny.gguf", family, weights="Q8_0"))
    runtime, fresh = kind.open(model), kind.open(model)
    others = IDS[20:]
    expected = fresh.extend(IDS[:10] + others, rows=len(others))
    runtime.extend(IDS + IDS[:15], rows=0)
    runtime.truncate(10)
    kind.assert_same(runtime.extend(others, rows=len(others)), expected)
    if isinstance(runtime, Snapshotting):
        snapshot = runtime.snapshot()
        runtime.truncate(0)
        runtime.restore(snapshot)
        kind.assert_same(runtime.extend([7]), fresh.extend([7]))
        if not runtime.can_truncate:  # of a layer with a window, the snapshot has only that
            assert family.startswith("gemma")
            for _ in range(2):
                runtime.cancel()
                with pytest.raises(Cancelled):
                    runtime.extend([1, 2, 3])
                assert runtime.length == 36
            with pytest.raises(InvalidRequest, match="not held any more"):
                runtime.truncate(10)
            kind.assert_same(runtime.extend([8]), fresh.extend([8]))
            runtime.truncate(0)
            runtime.extend(IDS[:40], rows=0)
        runtime.truncate(10)
        kind.assert_same(runtime.extend(others, rows=len(others)), expected)
    runtime.close()
    fresh.close()
