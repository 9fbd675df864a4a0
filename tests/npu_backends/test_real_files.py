"""Real files in the NumPy reference against llama.cpp: each weight alike, then as llama.cpp serves the file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.shared_protocol.model import load_model
from hybrid.tests.support.llama_cpp import library_path
from hybrid.tests.support.llama_cpp_logits import F16, exact_parameters_are_known, llama_cpp_logits
from hybrid.tests.support.steps import run
from hybrid.tests.support.unpacked import write_unpacked

CODE = """def binary_search(items, wanted):
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
"""
TABLE = [1, 2, 3, 4, 5]


SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
QWEN = ["qwen2.5-coder-0.5b-instruct.gguf", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"]


@pytest.fixture(params=[SMOLLM2, *(pytest.param(name, marks=pytest.mark.large) for name in QWEN)])
def path(request: pytest.FixtureRequest) -> Path:
    if library_path() is None or not exact_parameters_are_known():
        pytest.skip("no llama.cpp is installed, or one whose parameters lie elsewhere")
    if request.param == SMOLLM2:
        found: Path = request.getfixturevalue("smollm2_path")
        return found
    found = Path(os.environ.get("HYBRID_TEST_MODELS", "/nonexistent")) / request.param
    if not found.exists():
        pytest.skip(f"{request.param} is not in the folder that HYBRID_TEST_MODELS names")
    return found


@pytest.mark.timeout(1800)
@pytest.mark.large  # the file once more on the disk and twice in memory, at 32 bits per weight: 0.7, 2.5 and 7.1 GB
def test_with_the_same_weights_in_float32_the_logits_are_those_of_llama_cpp(path: Path, tmp_path: Path) -> None:
    model = load_model(path)
    ids = model.tokenizer.encode(CODE)
    unpacked = write_unpacked(path, tmp_path / "unpacked.gguf")
    theirs = llama_cpp_logits(unpacked, ids, context=256)
    unpacked.unlink()
    ours = run(ReferenceExecutor(model, num_blocks=8, kv_type="f32"), ids, TABLE)
    assert np.abs(ours - theirs).max() < 1e-4 * theirs.std()


def test_as_the_file_is_served_the_logits_are_those_of_llama_cpp_within_its_rounding_to_int8(path: Path) -> None:
    model = load_model(path)
    ids = model.tokenizer.encode(CODE)
    theirs = llama_cpp_logits(path, ids, context=256, kv_type=F16)
    ours = run(ReferenceExecutor(model, num_blocks=8), ids, TABLE)
    cosines = np.einsum("pv,pv->p", ours, theirs) / (np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1))
    assert np.median(cosines) > 0.999
    best, second = np.sort(theirs, axis=1)[1:, :-3:-1].T  # the first token's activations are too large for groups of 256
    clear = best - second > 0.5
    assert clear.sum() > len(ids) / 2
    np.testing.assert_array_equal(ours.argmax(axis=1)[1:][clear], theirs.argmax(axis=1)[1:][clear])
