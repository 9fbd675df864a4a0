"""A device and a cloud, each with an engine of its own, write the text that the cloud alone would have written."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import pytest
from hybrid.cloud.engine.llm import LLM
from hybrid.cloud.server.speculate.handler import SpeculateService
from hybrid.edge.corruptor import Corruptor
from hybrid.edge.drafter import Drafter
from hybrid.edge.native import NativeRuntime
from hybrid.edge.speculate import Speculation
from hybrid.edge.transport.link import LoopbackLink
from hybrid.shared_protocol.frames import Open, pack_ids
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.gguf_writer import write_tiny_llama
from hybrid.tests.support.real_cloud import real_frontend

chance = random.Random(4)
PROMPTS = [[chance.randrange(3, 320) for _ in range(length)] for length in (1, 17, 33)]
SEED = 5
CASES = {
    "greedy": SamplingParams(temperature=0, max_tokens=24),
    "sampled": SamplingParams(temperature=0.8, max_tokens=24),
    "filtered": SamplingParams(temperature=1.2, top_p=0.8, top_k=60, min_p=0.01, max_tokens=24),
    "ended by ids": SamplingParams(temperature=1.5, max_tokens=24, stop_token_ids=tuple(range(40, 60))),
    "ended by text": SamplingParams(temperature=1.5, max_tokens=24, stop=("e", "th", "\ufffd\ufffd", " ")),
}


@pytest.fixture(scope="module")
def other_weights(tmp_path_factory: pytest.TempPathFactory, tiny_llama: Model) -> Model:
    """A worse model of the same vocabulary: it agrees with the cloud's now and then."""
    model = load_model(write_tiny_llama(tmp_path_factory.mktemp("models") / "other.gguf", seed=1))
    assert model.card.fingerprint == tiny_llama.card.fingerprint
    return model


@pytest.fixture
async def service(tiny_llama: Model) -> AsyncIterator[SpeculateService]:
    async with real_frontend(tiny_llama) as frontend:
        yield SpeculateService(frontend, secret=b"s" * 16)
        for _ in range(2_000):  # the last abort is on its way
            if not frontend.client.stats().used:
                break
            await asyncio.sleep(0.001)
        assert not frontend.client.stats().used


async def run(work: Callable[[], object]) -> object:
    return work()


async def drafted(service: SpeculateService, device: Model, prompt: list[int], params: SamplingParams, k: int, p: float) -> Speculation:
    runtime = NativeRuntime(device, context=96, threads=1)
    drafter = Drafter(runtime, prompt, params, SEED, end_ids=device.tokenizer.eos_ids, mutate=Corruptor(p, 9, 320))
    opening = Open(service.model_id, device.card.fingerprint, params, SEED, 0, len(prompt), ids=pack_ids(prompt))
    speculation = Speculation(drafter, device.tokenizer, opening)
    pieces = [piece async for piece in speculation.pieces(LoopbackLink(service.connect("key").handle), k, run)]
    runtime.close()
    speculation.said = "".join(piece.text for piece in pieces), pieces[-1].finish_reason
    return speculation


@pytest.mark.parametrize("params", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("same", [True, False], ids=["the same model", "another model"])
async def test_tokens_text_and_finish_are_those_of_the_cloud_alone(
    service: SpeculateService, tiny_llama: Model, other_weights: Model, params: SamplingParams, same: bool
) -> None:
    seeded = SamplingParams(**{name: getattr(params, name) for name in params.__struct_fields__} | {"seed": SEED})
    with LLM(tiny_llama, threads=1) as llm:
        alone = llm.generate(PROMPTS, seeded)
    device = tiny_llama if same else other_weights
    for prompt, expected in zip(PROMPTS, alone, strict=True):
        for k, p in ((0, 0.0), (1, 0.3), (3, 0.0), (8, 0.3), (5, 1.0)):
            speculation = await drafted(service, device, prompt, seeded, k, p)
            assert tuple(speculation.output_ids) == expected.token_ids, (k, p)
            assert speculation.said == (expected.text, expected.finish_reason), (k, p)
