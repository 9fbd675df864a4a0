"""One kernel id, one result: to the bit, however the work is cut, batched, threaded or paged."""

from collections.abc import Iterator

import numpy as np
import pytest
from hybrid.npu_backends.cpu.executor import CpuExecutor
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.npu_backends.step import StepExecutor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.executors import ISAS, native
from hybrid.tests.support.steps import batch_of, run

TABLE = [1, 2, 3, 4, 5]
# the real model on the best instruction set; a tiny one on each, and on the reference
CASES = [("smollm2", "")] * bool(ISAS) + [("tiny_llama", isa) for isa in (*ISAS, "reference")]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[Model, str]:
    name, isa = request.param
    return request.getfixturevalue(name), isa


@pytest.fixture(scope="module")
def executor(case: tuple[Model, str]) -> Iterator[StepExecutor]:
    model, isa = case
    if isa == "reference":
        yield ReferenceExecutor(model, num_blocks=64)
    else:
        with native(model, isa) as opened:
            yield opened


@pytest.fixture(scope="module")
def prompt(case: tuple[Model, str]) -> list[int]:
    return [(i * 7919 + 11) % case[0].architecture.vocab_size for i in range(70)]


@pytest.fixture(scope="module")
def whole(executor: StepExecutor, prompt: list[int]) -> np.ndarray:
    """Logits of every position, computed in one step."""
    return run(executor, prompt, TABLE)


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_a_prompt_in_chunks_equals_the_whole(executor: StepExecutor, prompt: list[int], whole: np.ndarray, chunk: int) -> None:
    np.testing.assert_array_equal(run(executor, prompt, [6, 7, 8, 9, 10], chunk), whole)


def test_the_order_of_blocks_in_the_cache_changes_nothing(executor: StepExecutor, prompt: list[int], whole: np.ndarray) -> None:
    np.testing.assert_array_equal(run(executor, prompt, [40, 3, 17, 60, 2], 23), whole)


def test_neighbours_in_the_batch_change_nothing(executor: StepExecutor, prompt: list[int], whole: np.ndarray) -> None:
    vocab = executor.vocab_size
    others = [[(i * 104729 + k) % vocab for i in range(5 + 9 * k)] for k in range(8)]
    parts = [(ids, 0, list(range(10 + 5 * k, 15 + 5 * k))) for k, ids in enumerate(others[:6])]
    parts.insert(3, (prompt, 0, TABLE))
    start = sum(len(ids) for ids in others[:3])
    np.testing.assert_array_equal(executor.step(batch_of(parts))[start : start + len(prompt)], whole)
    # and the decode of its last token among decodes of others: tiles of every height
    for count in range(len(others)):
        decodes = [([ids[0]], 0, [50 + k]) for k, ids in enumerate(others)][:count]
        decodes.append(([prompt[-1]], len(prompt) - 1, TABLE))
        np.testing.assert_array_equal(executor.step(batch_of(decodes, rows=[count]))[0], whole[-1])


def test_verified_drafts_equal_single_steps(executor: StepExecutor, prompt: list[int], whole: np.ndarray) -> None:
    table = [11, 12, 13, 14, 15]
    run(executor, prompt[:50], table)
    drafts = [prompt[50], 5, 6, 7, 8]  # the first is right; the others are rejected, and overwritten below
    np.testing.assert_array_equal(executor.step(batch_of([(drafts, 50, table)]))[0], whole[50])
    rows = [executor.step(batch_of([(prompt[at : at + 9], at, table)])) for at in (51, 60)]
    np.testing.assert_array_equal(np.concatenate(rows), whole[51:69])


def test_logits_of_some_rows_are_those_of_all(executor: StepExecutor, prompt: list[int], whole: np.ndarray) -> None:
    some = executor.step(batch_of([(prompt, 0, TABLE)], rows=[0, 33, 69]))
    np.testing.assert_array_equal(some, whole[[0, 33, 69]])
    assert executor.step(batch_of([(prompt, 0, TABLE)], rows=[])).shape == (0, executor.vocab_size)


@pytest.mark.parametrize(("threads", "block_size"), [(2, 16), (3, 16), (2, 32)])
def test_threads_and_block_size_change_nothing(
    case: tuple[Model, str], prompt: list[int], whole: np.ndarray, threads: int, block_size: int
) -> None:
    model, isa = case
    if isa == "reference":
        other: StepExecutor = ReferenceExecutor(model, num_blocks=16, block_size=block_size, threads=threads)
        np.testing.assert_array_equal(run(other, prompt, [4, 9, 2, 7, 5], 13), whole)
        return
    with native(model, isa, num_blocks=16, block_size=block_size, threads=threads) as opened:
        assert isinstance(opened, CpuExecutor) and opened.threads == threads
        np.testing.assert_array_equal(run(opened, prompt, [4, 9, 2, 7, 5]), whole)
        np.testing.assert_array_equal(run(opened, prompt, [1, 3, 6, 8, 10], 13), whole)
