"""A tiny random model of every family, each in another weight type: every way of computing a text gives the same token ids."""

from pathlib import Path

import numpy as np
import pytest
from hybrid.apps.exactness import Ids, Prompts, alone, batched, drafted, first_difference, warm
from hybrid.cloud.engine.llm import LLM
from hybrid.edge.native import NativeRuntime
from hybrid.shared_protocol.model import load_model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.executors import needs_native
from hybrid.tests.support.tiny_families import TINY, VOCAB, write_tiny

TYPES = ("Q4_0", "Q5_1", "Q8_0", "F16", "Q5_0", "BF16", "Q4_1", "F32")  # blocks of 32 fit the tiny widths; the others fit none of them
CHANCE = np.random.default_rng(8)
PROMPTS: Prompts = [CHANCE.integers(3, VOCAB, length).tolist() for length in (1, 16, 33, 75, 40)]  # past the tiny windows and blocks
PARAMS = SamplingParams(temperature=0.9, seed=11, max_tokens=12)


@needs_native
@pytest.mark.parametrize(("name", "weights"), [(name, TYPES[number % len(TYPES)]) for number, name in enumerate(TINY)])
def test_every_way_of_computing_gives_the_same_ids(name: str, weights: str, tmp_path: Path) -> None:
    model = load_model(write_tiny(tmp_path / "model.gguf", name, weights=weights))
    other = load_model(write_tiny(tmp_path / "other.gguf", name, seed=1, weights=weights))
    ways: dict[str, Ids] = {}
    with LLM(model, threads=1, backend="native") as llm:
        plain = alone(llm, PROMPTS, PARAMS)
        ways["batched"] = batched(llm, PROMPTS, PARAMS)
        ways["warm"] = warm(llm, PROMPTS, PARAMS)
        for device, k, corruption in ((model, 1, 0.0), (model, 5, 0.3), (other, 3, 0.0), (other, 8, 1.0)):
            runtime = NativeRuntime(device, threads=1, context=256)
            ways[f"drafted by {device.path.stem}, k={k}, corruption={corruption}"] = drafted(llm, runtime, k, corruption, PROMPTS, PARAMS)
            runtime.close()
    for chunk in (1, 7):
        with LLM(model, threads=1, backend="native", long_prefill_token_threshold=chunk) as llm:
            ways[f"chunks of {chunk}"] = batched(llm, PROMPTS, PARAMS)
    with LLM(model, threads=2, backend="native", block_size=32) as llm:
        ways["two threads, blocks of 32"] = batched(llm, PROMPTS, PARAMS)
    assert {way: first_difference(plain, ids) for way, ids in ways.items()} == dict.fromkeys(ways)
    assert len(set(plain)) == len(PROMPTS), "the answers are too alike to show anything"


def test_the_numpy_reference_agrees_with_itself_on_windows_caps_and_norms(tmp_path: Path) -> None:
    params = SamplingParams(temperature=0.9, seed=11, max_tokens=4)
    for name in ("gemma2", "gemma3"):
        model = load_model(write_tiny(tmp_path / f"{name}.gguf", name))
        with LLM(model, backend="reference") as llm:
            plain = alone(llm, PROMPTS[:3], params)
            assert first_difference(plain, batched(llm, PROMPTS[:3], params)) is None
        with LLM(model, backend="reference", long_prefill_token_threshold=5) as llm:
            assert first_difference(plain, batched(llm, PROMPTS[:3], params)) is None
