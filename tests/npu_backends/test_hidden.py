"""The hidden state behind a row of logits: what the head multiplies, on request, at no cost to the logits."""

from contextlib import nullcontext

import numpy as np
import pytest
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.npu_backends.step import StepExecutor
from hybrid.shared_protocol.errors import EngineFailed
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.executors import ISAS, native, needs_native
from hybrid.tests.support.kernel_twin import ROUNDING, KernelTwin
from hybrid.tests.support.networks import FAMILIES, random_network
from hybrid.tests.support.steps import batch_of, relative_errors

IDS = [(i * 37 + 5) % 320 for i in range(60)]
TABLE = [1, 2, 3, 4]


def both(executor: StepExecutor, *parts: tuple[list[int], int, list[int]], rows: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Logits and hidden states of one step."""
    batch = batch_of(parts, rows=rows)
    hidden = np.full((len(batch.logit_rows), executor.hidden_size), np.nan, np.float32)
    return executor.step(batch, hidden), hidden


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("family", ["llama", "gemma2", "qwen2"])
def test_the_kernels_give_what_their_twin_multiplies_to_the_bit(tiny_llama: Model, family: str, isa: str) -> None:
    model = random_network(tiny_llama, **FAMILIES[family])
    logits, hidden = KernelTwin(model, ROUNDING[isa]).run(IDS[:20])
    with native(model, isa, threads=2) as executor:
        found = both(executor, (IDS[:20], 0, TABLE))
    np.testing.assert_array_equal(found[0], logits)
    np.testing.assert_array_equal(found[1], hidden)


@needs_native
def test_a_small_model_s_states_are_those_of_the_reference_with_int8_inputs(tiny_llama: Model) -> None:
    reference = ReferenceExecutor(tiny_llama, num_blocks=8, emulate_int8=True)
    with native(tiny_llama) as executor:
        errors = relative_errors(both(executor, (IDS, 0, TABLE))[1], both(reference, (IDS, 0, TABLE))[1])
    assert np.median(errors) < 1e-6 and errors.max() < 1e-3


@pytest.mark.parametrize("isa", [*ISAS, "reference"])
def test_states_do_not_depend_on_chunks_neighbours_or_rows_and_no_logit_on_states(tiny_llama: Model, isa: str) -> None:
    if isa == "reference":
        check_one_result(ReferenceExecutor(tiny_llama, num_blocks=64))
    else:
        with native(tiny_llama, isa, threads=2) as executor:
            check_one_result(executor)


def check_one_result(executor: StepExecutor) -> None:
    logits, whole = both(executor, (IDS, 0, TABLE))
    np.testing.assert_array_equal(executor.step(batch_of([(IDS, 0, TABLE)])), logits)
    chunks = [both(executor, (IDS[at : at + 7], at, [6, 7, 8, 9]))[1] for at in range(0, 60, 7)]
    np.testing.assert_array_equal(np.concatenate(chunks), whole)
    parts = [(IDS[9:30], 0, [10, 11]), (IDS, 0, TABLE), ([7], 0, [12])]
    np.testing.assert_array_equal(both(executor, *parts)[1][21:81], whole)
    np.testing.assert_array_equal(both(executor, (IDS, 0, TABLE), rows=[3, 41, 59])[1], whole[[3, 41, 59]])
    assert both(executor, (IDS, 0, TABLE), rows=[])[1].shape == (0, executor.hidden_size)


@pytest.mark.parametrize("kind", [pytest.param("native", marks=needs_native), "reference"])
def test_an_array_that_the_states_do_not_fit_is_refused_before_anything_is_written(tiny_llama: Model, kind: str) -> None:
    batch, size = batch_of([(IDS[:4], 0, TABLE)], rows=[2, 3]), tiny_llama.architecture.hidden_size
    sealed = np.zeros((2, size), np.float32)
    sealed.flags.writeable = False
    wrong = [np.zeros((4, size), np.float32), np.zeros((2, size)), np.zeros((2, 2 * size), np.float32)[:, ::2], sealed]
    opened: StepExecutor = ReferenceExecutor(tiny_llama, num_blocks=8)
    with native(tiny_llama) if kind == "native" else nullcontext(opened) as executor:
        for array in wrong:
            with pytest.raises(EngineFailed, match=f"hidden must be writable C-contiguous float32 \\[2, {size}\\]"):
                executor.step(batch, array)
