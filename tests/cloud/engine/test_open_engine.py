"""What an engine makes of a model's architecture: its context, its vocabulary, the name of its cache."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hybrid import LLM, SamplingParams
from hybrid.cloud.engine.open_engine import open_engine, scope_of
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.npu_backends.cpu.select import Backend, open_executor
from hybrid.quant.formats import quantize
from hybrid.shared_protocol.model import Model, load_model
from hybrid.tests.support.executors import needs_native
from hybrid.tests.support.gguf_writer import write_gguf
from hybrid.tests.support.steps import batch_of, run
from hybrid.tests.support.tiny_families import ORIGINAL_CONTEXT, TINY, tiny_family_metadata, tiny_family_tensors, tiny_values, write_tiny

PROMPT = [(i * 7919 + 11) % 320 for i in range(60)]
GREEDY = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)


def padded(path: Path, rows: int) -> Model:
    """A Qwen 2 whose embedding has rows past its tokens, the last the likeliest answer to everything."""
    values = tiny_values("qwen2")["token_embd.weight"]
    more = np.repeat(-100 * np.abs(values).sum(axis=0, keepdims=True), rows - len(values), axis=0)
    more[1::2] *= -1
    embedding = np.concatenate([values, more]).astype(np.float32)
    tensors = {**tiny_family_tensors("qwen2"), "token_embd.weight": ("F32", embedding.shape, quantize(embedding, "F32").tobytes())}
    return load_model(write_gguf(path, tiny_family_metadata("qwen2", __vocab_size=rows), tensors))


def test_rows_of_the_vocabulary_past_its_tokens_are_never_drawn(tmp_path: Path) -> None:
    model = padded(tmp_path / "padded.gguf", 352)
    assert model.architecture.vocab_size == 352 and model.tokenizer.vocab_size == 320
    assert run(ReferenceExecutor(model, num_blocks=8), PROMPT, [1, 2, 3, 4])[-1].argmax() >= 320
    plain = load_model(write_tiny(tmp_path / "plain.gguf", "qwen2"))
    answers = [LLM(each, backend="reference", kv_blocks=16).generate([PROMPT], GREEDY)[0].token_ids for each in (model, plain)]
    assert answers[0] == answers[1] and max(answers[0]) < 320


@pytest.mark.parametrize("name", TINY)
def test_a_warm_prefix_gives_the_tokens_of_a_cold_one(tmp_path: Path, name: str) -> None:
    llm = LLM(load_model(write_tiny(tmp_path / "m.gguf", name)), backend="reference", kv_blocks=32)
    cold, warm = (llm.generate([PROMPT], GREEDY)[0] for _ in range(2))
    assert (cold.num_cached, warm.num_cached) == (0, 48)
    assert warm.token_ids == cold.token_ids


def test_the_longest_request_decides_which_factors_serve(tmp_path: Path) -> None:
    model = load_model(write_tiny(tmp_path / "m.gguf", "phi3-longrope"))
    frequencies = []
    for limit in (ORIGINAL_CONTEXT, ORIGINAL_CONTEXT + 1):
        executor = open_engine(model, backend="reference", max_model_len=limit).executor
        assert isinstance(executor, ReferenceExecutor)
        frequencies.append(executor.architecture.rotary.frequencies)
    long = model.architecture.long_rotary
    assert long is not None
    assert frequencies == [model.architecture.rotary.frequencies, long.frequencies]


def test_whatever_changes_attention_names_another_cache(tmp_path: Path) -> None:
    model = load_model(write_tiny(tmp_path / "m.gguf", "gemma3"))

    def scope(**changes: object) -> bytes:
        other = dataclasses.replace(model, architecture=dataclasses.replace(model.architecture, **changes))
        return bytes(scope_of(other, "avx2-1", 16))

    changes = [{"windows": (0,) * 7}, {"attention_softcap": 5.0}, {"attention_scale": 1.0}, {"local_rotary": None}, {"norm_eps": 1e-6}]
    assert len({scope(), *(scope(**change) for change in changes)}) == 6
    assert scope() == scope(context_length=100)


@pytest.mark.parametrize("backend", ["reference", pytest.param("native", marks=needs_native)])
def test_a_context_that_a_file_only_claims_takes_no_memory_for_its_rotation(tmp_path: Path, backend: Backend) -> None:
    model = load_model(write_tiny(tmp_path / "m.gguf", "gemma3", weights="Q8_0", __context_length=1 << 18))
    executor = open_executor(model, num_blocks=1 << 14, threads=1, backend=backend)
    executor.step(batch_of([(PROMPT, 0, [1, 2, 3, 4])]))
    tables = 2 * 256 * 16 * 8  # two, of the first 256 positions, 16 pairs, cosine and sine; all would be 64 MiB
    assert executor.memory().weights < 1_500_000 + tables
    executor.close()
