"""Every way of computing a text gives the same token ids: 6 prompts of our own x 24 tokens, greedy and sampled."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hybrid.apps.exactness import CHUNKS, CORRUPTIONS, DRAFT_LENGTHS, Ids, Prompts, alone, batched, drafted, first_difference, warm
from hybrid.cloud.engine.llm import LLM
from hybrid.edge.native import NativeRuntime
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams

PROMPTS = Path(__file__).parents[1] / "data" / "prompts.jsonl"


@pytest.fixture(scope="module", params=[0.0, 0.8], ids=["T0", "T0.8"])
def params(request: pytest.FixtureRequest) -> SamplingParams:
    return SamplingParams(temperature=request.param, seed=7, max_tokens=24)


@pytest.fixture(scope="module")
def llm(smollm2: Model) -> Iterator[LLM]:
    with LLM(smollm2, threads=1) as llm:
        yield llm


@pytest.fixture(scope="module")
def runtime(smollm2: Model) -> Iterator[NativeRuntime]:
    runtime = NativeRuntime(smollm2, threads=1, context=512)
    yield runtime
    runtime.close()


@pytest.fixture(scope="module")
def prompts(smollm2: Model) -> Prompts:
    texts = [json.loads(line)["turns"][0] for line in PROMPTS.read_text().splitlines()]
    return [smollm2.render_chat([{"role": "user", "content": text}]) for text in texts]


@pytest.fixture(scope="module")
def plain(llm: LLM, prompts: Prompts, params: SamplingParams) -> Ids:
    ids = alone(llm, prompts, params)
    assert [len(answer) for answer in ids].count(24) >= 3, "the answers are too short to show anything"
    return ids


def test_a_batch_changes_nothing(llm: LLM, prompts: Prompts, params: SamplingParams, plain: Ids) -> None:
    assert first_difference(plain, batched(llm, prompts, params)) is None


def test_a_warm_prefix_changes_nothing(llm: LLM, prompts: Prompts, params: SamplingParams, plain: Ids) -> None:
    assert first_difference(plain, warm(llm, prompts, params)) is None


@pytest.mark.parametrize("k", DRAFT_LENGTHS)
def test_a_device_that_drafts_changes_nothing(
    llm: LLM, runtime: NativeRuntime, prompts: Prompts, params: SamplingParams, plain: Ids, k: int
) -> None:
    """Each length with each share of corrupted drafts, at one of both temperatures; each of those at both. All three together, and with
    more tokens, are run by benchmarks/exactness.py."""
    for number, corruption in enumerate(CORRUPTIONS):
        if (k + number) % 2 == (params.temperature > 0):
            assert first_difference(plain, drafted(llm, runtime, k, corruption, prompts, params)) is None, corruption


@pytest.mark.parametrize("chunk", CHUNKS)
def test_the_size_of_chunks_changes_nothing(smollm2: Model, prompts: Prompts, params: SamplingParams, plain: Ids, chunk: int) -> None:
    with LLM(smollm2, threads=1, long_prefill_token_threshold=chunk) as llm:
        assert first_difference(plain, batched(llm, prompts, params)) is None


def test_the_number_of_threads_changes_nothing(smollm2: Model, prompts: Prompts, params: SamplingParams, plain: Ids) -> None:
    with LLM(smollm2, threads=2) as llm:
        assert first_difference(plain, alone(llm, prompts, params)) is None
        assert first_difference(plain, batched(llm, prompts, params)) is None
