"""Attention over more keys than one part holds, and through windows: to the bit, whoever computes which part."""

import numpy as np
import pytest
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.executors import ISAS, native, needs_native
from hybrid.tests.support.kernel_twin import ROUNDING, KernelTwin
from hybrid.tests.support.networks import FAMILIES, random_network
from hybrid.tests.support.steps import batch_of, run

IDS = [(i * 37 + 5) % 320 for i in range(600)]
TABLE = list(range(1, 39))  # blocks of 16
NETWORKS = {"causal": {}, "windows": {**FAMILIES["gemma2"], "windows": (24, 300)}}

pytestmark = needs_native


@pytest.fixture(scope="module", params=NETWORKS)
def network(request: pytest.FixtureRequest, tiny_llama: Model) -> Model:
    return random_network(tiny_llama, context_length=1024, **NETWORKS[request.param])


@pytest.fixture(scope="module")
def whole(network: Model) -> np.ndarray:
    with native(network, num_blocks=40) as executor:
        return run(executor, IDS, TABLE)


@pytest.mark.parametrize(("threads", "chunk", "block_size"), [(1, 37, 16), (2, 23, 16), (3, 150, 48), (2, 600, 32)])
def test_threads_chunks_and_blocks_change_nothing(network: Model, whole: np.ndarray, threads: int, chunk: int, block_size: int) -> None:
    with native(network, num_blocks=40, threads=threads, block_size=block_size) as executor:
        np.testing.assert_array_equal(run(executor, IDS, TABLE[::-1], chunk), whole)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_decode_equals_its_row_of_the_prompt_alone_and_among_others(network: Model, whole: np.ndarray, threads: int) -> None:
    with native(network, num_blocks=64, threads=threads) as executor:
        run(executor, IDS, TABLE)
        run(executor, IDS[:70], [40, 41, 42, 43, 44])
        for at in (255, 256, 511, 512, 599):
            one = (IDS[at : at + 1], at, TABLE)
            np.testing.assert_array_equal(executor.step(batch_of([one]))[0], whole[at])
            others = [(IDS[70:75], 70, [40, 41, 42, 43, 44]), one, (IDS[:9], 0, [50])]
            np.testing.assert_array_equal(executor.step(batch_of(others, rows=[5]))[0], whole[at])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("window", [0, 40, 270])
def test_two_parts_equal_the_twin_to_the_bit(tiny_llama: Model, isa: str, window: int) -> None:
    small = random_network(tiny_llama, num_layers=1, num_heads=2, num_kv_heads=1, windows=(window,))
    ids, first = IDS[:290], 240
    with native(small, isa, threads=2) as executor:
        np.testing.assert_array_equal(run(executor, ids, TABLE, 29)[first:], KernelTwin(small, ROUNDING[isa]).logits_of(ids, first))
