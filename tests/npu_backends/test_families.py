"""Every family in the NumPy reference, on tiny random models, against transformers and against llama.cpp on the same file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.npu_backends.cpu.select import open_executor
from hybrid.npu_backends.step import StepExecutor
from hybrid.shared_protocol.model import Model, load_model
from hybrid.tests.support.executors import native, needs_native
from hybrid.tests.support.family_goldens import GOLDENS, IDS, POSITIONS
from hybrid.tests.support.llama_cpp import library_path
from hybrid.tests.support.llama_cpp_logits import exact_parameters_are_known, llama_cpp_logits
from hybrid.tests.support.steps import batch_of, relative_errors, run
from hybrid.tests.support.tiny_families import CONTEXT, ORIGINAL_CONTEXT, TINY, WINDOW, write_tiny

TABLE = [3, 1, 4, 5, 2]
# llama.cpp ignores the window of these two architectures: it is an oracle for positions that see everything
NO_WINDOW_THERE = ("mistral", "phi3-window")
# llama.cpp looks GELU up in a table of f16
TOLERANCES = {"gemma2": 3e-3, "gemma3": 3e-3}


@pytest.fixture(scope="module", params=TINY)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def path(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("families") / f"{name}.gguf", name)


@pytest.fixture(scope="module")
def model(path: Path) -> Model:
    return load_model(path)


def deviation(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the spread of the logits."""
    return float(np.abs(found - expected).max() / expected.std())


def test_logits_are_those_of_transformers(name: str, model: Model) -> None:
    goldens = np.load(GOLDENS)
    cases = {name: ORIGINAL_CONTEXT, f"{name}-long": CONTEXT}
    for golden in cases.keys() & set(goldens):
        executor = ReferenceExecutor(model.for_context(cases[golden]), num_blocks=33, kv_type="f32")
        assert deviation(run(executor, IDS, TABLE)[POSITIONS], goldens[golden]) < 3e-5, golden


@pytest.mark.parametrize("context", [ORIGINAL_CONTEXT, CONTEXT])
def test_logits_are_those_of_llama_cpp_on_the_same_file(name: str, path: Path, model: Model, context: int) -> None:
    if library_path() is None or not exact_parameters_are_known():
        pytest.skip("no llama.cpp is installed, or one whose parameters lie elsewhere")
    theirs = llama_cpp_logits(path, IDS, context=context)
    ours = run(ReferenceExecutor(model.for_context(context), num_blocks=33, kv_type="f32"), IDS, TABLE)
    seen = WINDOW if name in NO_WINDOW_THERE else len(IDS)
    assert deviation(ours[:seen], theirs[:seen]) < TOLERANCES.get(model.architecture.family, 1e-4)


def test_the_half_precision_cache_costs_less_than_a_hundredth_of_the_spread(model: Model) -> None:
    exact = run(ReferenceExecutor(model, num_blocks=8, kv_type="f32"), IDS, TABLE)
    assert deviation(run(ReferenceExecutor(model, num_blocks=8), IDS, TABLE), exact) < 1e-2


@pytest.fixture(params=["reference", pytest.param("native", marks=needs_native)])
def executor(request: pytest.FixtureRequest, name: str, tmp_path: Path) -> Iterator[StepExecutor]:
    """The model in Q8_0, which every executor computes."""
    opened = open_executor(
        load_model(write_tiny(tmp_path / "m.gguf", name, weights="Q8_0")), num_blocks=32, threads=1, backend=request.param
    )
    yield opened
    opened.close()


def test_chunks_and_neighbours_change_no_bit(executor: StepExecutor) -> None:
    whole = run(executor, IDS, TABLE)
    for chunk in (1, 7, WINDOW + 1):
        np.testing.assert_array_equal(run(executor, IDS, [6, 7, 8, 9, 10], chunk), whole)
    run(executor, IDS[:40], [6, 7, 8, 9, 10])
    others = [(IDS[5:20], 0, [11]), (IDS[40:], 40, [6, 7, 8, 9, 10]), (IDS[3:50], 0, [12, 13, 14, 15])]
    np.testing.assert_array_equal(executor.step(batch_of(others))[15:45], whole[40:])


@needs_native
def test_the_native_kernels_compute_what_the_file_says(name: str, tmp_path: Path) -> None:
    """To the bit they are held to their twin. Here a last bit may turn an int8 code, which costs up to 3e-2; a wrong network costs 1."""
    model = load_model(write_tiny(tmp_path / "m.gguf", name, weights="Q8_0")).for_context(128)
    with native(model) as kernels:
        ours = run(kernels, IDS, TABLE)
    errors = relative_errors(ours, run(ReferenceExecutor(model, num_blocks=8, emulate_int8=True), IDS, TABLE))
    assert np.median(errors) < 1.5e-2 and errors.max() < 5e-2
