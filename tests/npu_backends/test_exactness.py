"""One kernel id, one result: to the bit, however the work is cut, batched, threaded or paged. On the real model."""

from collections.abc import Iterator

import numpy as np
import pytest
from hybrid.npu_backends.cpu.executor import CpuExecutor
from hybrid.npu_backends.cpu.library import describe
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.steps import batch_of, run

pytestmark = pytest.mark.skipif(not describe().found, reason=describe().reason)

LONG = [(i * 7919 + 11) % 49152 for i in range(70)]
OTHERS = [[(i * 104729 + k) % 49152 for i in range(5 + 9 * k)] for k in range(6)]


@pytest.fixture(scope="module")
def one_thread(smollm2: Model) -> Iterator[CpuExecutor]:
    executor = CpuExecutor(smollm2, num_blocks=64, threads=1)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def whole(one_thread: CpuExecutor) -> np.ndarray:
    return run(one_thread, LONG, [1, 2, 3, 4, 5])


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_a_prompt_in_chunks_equals_the_whole(one_thread: CpuExecutor, whole: np.ndarray, chunk: int) -> None:
    np.testing.assert_array_equal(run(one_thread, LONG, [6, 7, 8, 9, 10], chunk), whole)


def test_the_order_of_blocks_in_the_cache_changes_nothing(one_thread: CpuExecutor, whole: np.ndarray) -> None:
    np.testing.assert_array_equal(run(one_thread, LONG, [40, 3, 17, 60, 2], 23), whole)


def test_neighbours_in_the_batch_change_nothing(one_thread: CpuExecutor, whole: np.ndarray) -> None:
    parts = [(ids, 0, list(range(10 + 5 * i, 15 + 5 * i))) for i, ids in enumerate(OTHERS)]
    parts.insert(3, (LONG, 0, [1, 2, 3, 4, 5]))
    start = sum(len(ids) for ids in OTHERS[:3])
    np.testing.assert_array_equal(one_thread.step(batch_of(parts))[start : start + len(LONG)], whole)
    # and the decode of its last token, among decodes of the others, of every tile height
    for count in range(7):
        decodes = [([ids[-1]], len(ids) - 1, table) for (ids, _, table) in parts if ids is not LONG][:count]
        decodes.append(([LONG[-1]], len(LONG) - 1, [1, 2, 3, 4, 5]))
        np.testing.assert_array_equal(one_thread.step(batch_of(decodes, rows=[count]))[0], whole[-1])


def test_verified_drafts_equal_single_steps(one_thread: CpuExecutor, whole: np.ndarray) -> None:
    run(one_thread, LONG[:50], [11, 12, 13, 14, 15])
    drafts = [LONG[50], 5, 6, 7, 8]  # the first is right, the rest are rejected and overwritten below
    assert np.array_equal(one_thread.step(batch_of([(drafts, 50, [11, 12, 13, 14, 15])]))[0], whole[50])
    rows = [one_thread.step(batch_of([(LONG[at : at + 9], at, [11, 12, 13, 14, 15])])) for at in (51, 60)]
    np.testing.assert_array_equal(np.concatenate(rows), whole[51:69])


def test_logits_of_some_rows_are_those_of_all(one_thread: CpuExecutor, whole: np.ndarray) -> None:
    some = one_thread.step(batch_of([(LONG, 0, [1, 2, 3, 4, 5])], rows=[0, 33, 69]))
    np.testing.assert_array_equal(some, whole[[0, 33, 69]])
    assert one_thread.step(batch_of([(LONG, 0, [1, 2, 3, 4, 5])], rows=[])).shape == (0, 49152)


@pytest.mark.parametrize(("threads", "block_size"), [(2, 16), (3, 16), (2, 32)])
def test_threads_and_block_size_change_nothing(smollm2: Model, whole: np.ndarray, threads: int, block_size: int) -> None:
    executor = CpuExecutor(smollm2, num_blocks=16, block_size=block_size, threads=threads)
    table = [4, 9, 2, 7, 5]
    np.testing.assert_array_equal(run(executor, LONG, table), whole)
    np.testing.assert_array_equal(run(executor, LONG, [1, 3, 6, 8, 10], 13), whole)
    executor.close()
