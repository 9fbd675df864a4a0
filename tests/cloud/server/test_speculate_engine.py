"""Drafted answers over the real engine and a real, tiny model are the engine's plain answers, id for id."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.engine.llm import LLM
from hybrid.cloud.engine.open_engine import open_engine
from hybrid.cloud.engine.thread_client import ThreadEngineClient
from hybrid.cloud.server.speculate.handler import SpeculateHandler, SpeculateService
from hybrid.cloud.server.speculate.limits import SpeculateLimits
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.frames import pack_ids
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.verify import prefix_hash
from hybrid.tests.support.drafting import Device, opening
from hybrid.tests.support.gguf_writer import tiny_vocabulary, write_tiny_llama

VOCAB = 320


@pytest.fixture(scope="module")
def plain(tiny_llama: Model):
    """What the engine answers by itself."""
    llm = LLM(tiny_llama)

    def answers(prompts: list[list[int]], params: SamplingParams) -> list[tuple[int, ...]]:
        return [generation.token_ids for generation in llm.generate(prompts, params)]

    yield answers
    llm.close()


@pytest.fixture
async def service(tiny_llama: Model) -> AsyncIterator[SpeculateService]:
    client = ThreadEngineClient(open_engine(tiny_llama))
    limits = SpeculateLimits(frames_burst=10**9, wasted_burst=10**9)  # a fast machine must not meet what is per second
    yield SpeculateService(Frontend(tiny_llama, client), secret=b"s" * 16, limits=limits)
    try:
        async with asyncio.timeout(30):
            while (stats := client.stats()).used:  # the last message is on its way
                await asyncio.sleep(0.001)
        assert (stats.running, stats.waiting, stats.parked) == (0, 0, 0)
        assert stats.free + stats.cached == stats.total and stats.healthy
    finally:
        await client.close()


async def greeted(service: SpeculateService) -> SpeculateHandler:
    handler = service.connect("key")
    await handler.handle(frames.Hello((1,), frames.Limits()))
    return handler


async def started(service: SpeculateService, prompt: list[int], params: SamplingParams) -> Device:
    card = service.frontend.model.card
    assert params.seed is not None
    frame = opening(prompt, model=card.name, fingerprint=card.fingerprint, sampling=params, seed=params.seed)
    device = Device(await greeted(service), frame, prompt)
    await device.open()
    return device


def prompts(count: int) -> list[list[int]]:
    chance = random.Random(3)
    return [[chance.randrange(3, VOCAB) for _ in range(chance.randint(1, 40))] for _ in range(count)]


def wrong(token: int) -> int:
    return (token + 1) % VOCAB


@pytest.mark.parametrize(
    "params", [SamplingParams(temperature=0, seed=7, max_tokens=20), SamplingParams(temperature=0.8, seed=7, max_tokens=20)]
)
async def test_whatever_a_device_sends_the_text_is_the_plain_one(service: SpeculateService, plain, params: SamplingParams) -> None:
    (prompt,) = prompts(1)
    (answer,) = plain([prompt], params)
    device, whole = await started(service, prompt, params), [*prompt, *answer]
    assert len(answer) == 20

    def ahead(count: int) -> list[int]:
        return whole[len(device.committed) : len(device.committed) + count]

    assert (await device.draft(ahead(4))).n_accepted == 4
    partly = [*ahead(2), wrong(ahead(3)[2]), 5]
    window = device.window(partly)
    verdict = await device.draft(partly)
    assert verdict.n_accepted == 2
    assert await device.handler.handle(window) == [verdict]  # repeated
    (conflict,) = await device.handler.handle(device.window(ahead(1), round=device.round))
    (unhashed,) = await device.handler.handle(device.window(ahead(1), prefix_hash=b"?" * 16))
    assert (conflict.code, unhashed.code) == ("round_conflict", "prefix_hash")
    assert (await device.draft([wrong(t) for t in ahead(3)])).n_accepted == 0
    assert (await device.draft()).token == whole[len(device.committed) - 1]
    forgetful = device.window([answer[0], wrong(answer[1])], base_len=len(prompt), prefix_hash=prefix_hash(prompt))
    (stale,) = await device.handler.handle(forgetful)
    assert (stale.start, stale.ids) == (len(prompt) + 1, pack_ids(device.committed[len(prompt) + 1 :]))
    device.round += 1
    last = await device.draft(ahead(20))
    assert last.finish == "length"
    assert list(device.committed) == whole


async def drafted(service: SpeculateService, prompt: list[int], answer: tuple[int, ...], params: SamplingParams, k: int) -> tuple[int, ...]:
    """Draft `k` at a time what plain decoding gave, spoilt in places; the ids that the cloud committed."""
    device, chance = await started(service, prompt, params), random.Random(k)
    while True:
        done = len(device.committed) - len(prompt)
        ids = [wrong(t) if chance.random() < 0.3 else t for t in answer[done : done + k]]
        if (await device.draft(ids)).finish is not None:
            return device.committed[len(prompt) :]


async def test_greedy_answers_are_the_same_with_drafting_on_for_every_draft_length(service: SpeculateService, plain) -> None:
    params = SamplingParams(temperature=0, seed=1, max_tokens=8)
    asked = prompts(50)
    for prompt, answer in zip(asked, plain(asked, params), strict=True):
        found = await asyncio.gather(*(drafted(service, prompt, answer, params, k) for k in range(1, 9)))
        assert found == [answer] * 8, prompt


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=0.8, seed=11, max_tokens=16),
        SamplingParams(temperature=1.0, top_p=0.7, top_k=50, seed=12, max_tokens=16, logprobs=2),
        SamplingParams(temperature=1.0, min_p=0.1, seed=13, max_tokens=16, stop_token_ids=(7, 60, 90, 100, 200, 210)),
    ],
)
async def test_sampled_answers_are_the_same_with_drafting_on(service: SpeculateService, plain, params: SamplingParams) -> None:
    asked = prompts(6)
    for prompt, answer in zip(asked, plain(asked, params), strict=True):
        found = await asyncio.gather(*(drafted(service, prompt, answer, params, k) for k in (1, 3, 8)))
        assert found == [answer] * 3


async def test_a_vocabulary_of_the_same_size_with_two_ids_swapped_is_refused_at_the_start(service: SpeculateService, tmp_path) -> None:
    tokens, _, _ = tiny_vocabulary()
    tokens[100], tokens[101] = tokens[101], tokens[100]
    device = load_model(write_tiny_llama(tmp_path / "swapped.gguf", tokenizer__ggml__tokens=tokens)).card
    cloud = service.frontend.model.card
    assert device.vocab_size == cloud.vocab_size
    (error,) = await (await greeted(service)).handle(opening([3, 4], model=cloud.name, fingerprint=device.fingerprint))
    assert error.code == "fingerprint_mismatch"
    assert device.fingerprint in error.message and cloud.fingerprint in error.message
