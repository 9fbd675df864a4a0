"""What the device answers through the SDK, and how its requests share it."""

from __future__ import annotations

import asyncio

import pytest
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.native import NativeRuntime
from hybrid.edge.session import Session
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.scripted_client import ASK, TO_EDGE, ask, client_of, stream, text_of, told, well


async def test_the_device_answers_in_openai_s_shape_and_says_so(smollm2: Model) -> None:
    async with client_of(smollm2, TO_EDGE, well) as (client, server):
        answer = await ask(client)
        again = await ask(client)
        unseeded = await ask(client, seed=None)
    session = Session(NativeRuntime(smollm2, context=512), smollm2)
    plain = "".join(part.text for part in session.chat(ASK, SamplingParams(temperature=0.8, seed=3, max_tokens=6)))
    assert text_of(answer) == text_of(again) == plain != ""
    assert told(answer) == ("edge", "simple", [("edge", 6)])
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 6
    assert answer.usage.prompt_tokens == len(smollm2.render_chat(ASK))
    assert answer.model == smollm2.card.name
    assert answer.hybrid is not None
    assert (answer.hybrid.seed, answer.hybrid.bytes_sent) == (3, 0)
    assert unseeded.hybrid is not None
    assert unseeded.hybrid.seed is not None
    assert server.connections == 0


async def test_a_stream_joined_is_the_whole_answer(smollm2: Model) -> None:
    async with client_of(smollm2, TO_EDGE) as (client, _):
        whole, chunks = await ask(client), await stream(client)
    assert text_of(chunks) == text_of(whole)
    assert [received.choices[0].delta.role for received in chunks] == ["assistant"] + [None] * 5
    assert [received.choices[0].finish_reason for received in chunks] == [None] * 5 + ["length"]
    assert len({received.id for received in chunks}) == 1
    assert [received.hybrid is None for received in chunks] == [True] * 5 + [False]
    assert chunks[-1].usage == whole.usage
    assert chunks[-1].hybrid == whole.hybrid


async def test_logprobs_come_with_their_tokens(smollm2: Model) -> None:
    async with client_of(smollm2, TO_EDGE) as (client, _):
        answer = await ask(client, logprobs=True, top_logprobs=2, temperature=0)
        with pytest.raises(errors.InvalidRequest, match="logprobs"):
            await ask(client, top_logprobs=2)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert "".join(entry.token for entry in logprobs.content) == text_of(answer)
    assert all(entry.top_logprobs[0].logprob == entry.logprob for entry in logprobs.content)  # greedy
    assert all(len(entry.top_logprobs) == 2 for entry in logprobs.content)


async def test_the_tokens_of_logprobs_joined_are_the_text_that_is_shown(smollm2: Model) -> None:
    async with client_of(smollm2, TO_EDGE) as (client, _):
        whole = text_of(await ask(client, temperature=0, max_tokens=12))
        for stop in ([], [whole[3:7]], [whole[8:9]]):
            answer = await ask(client, temperature=0, max_tokens=12, stop=stop, logprobs=True)
            logprobs = answer.choices[0].logprobs
            assert logprobs is not None
            assert logprobs.content is not None
            assert "".join(entry.token for entry in logprobs.content) == text_of(answer)
            assert bytes(b for entry in logprobs.content for b in entry.bytes or ()) == text_of(answer).encode()


async def test_nothing_that_is_asked_is_dropped(smollm2: Model) -> None:
    async with client_of(smollm2, TO_EDGE) as (client, _):
        with pytest.raises(TypeError):
            await ask(client, temprature=0.1)
        before = text_of(await ask(client))
        with pytest.raises(TypeError, match="'tools'"):  # row G66: what is said is the true reason, and the model answers on
            await ask(client, tools=[{"type": "function", "function": {"name": "f"}}])
        assert text_of(await ask(client)) == before
        with pytest.raises(errors.InvalidRequest, match="temperature"):
            await ask(client, temperature=3)
        with pytest.raises(errors.InvalidRequest, match="messages"):
            await ask(client, messages=[])
        with pytest.raises(errors.ContextOverflow) as long:
            await ask(client, messages=[{"role": "user", "content": "word " * 600}])
        assert long.value.asked > long.value.limit == 512
        assert text_of(await ask(client, max_completion_tokens=2)) == text_of(await ask(client, max_tokens=2))


async def test_requests_of_one_device_take_turns(smollm2: Model) -> None:
    async with client_of(smollm2, TO_EDGE) as (client, _):
        alone = [text_of(await ask(client, seed=seed)) for seed in range(3)]
        together = await asyncio.gather(*(ask(client, seed=seed) for seed in range(3)))
    assert [text_of(answer) for answer in together] == alone


async def test_a_cancelled_request_frees_the_device(smollm2: Model) -> None:
    async with client_of(smollm2, TO_EDGE) as (client, _):
        expected = text_of(await ask(client))
        running = asyncio.create_task(ask(client, max_tokens=400, temperature=1.5))
        await asyncio.sleep(0.1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        streamed = await client.chat.completions.create(messages=ASK, stream=True, max_tokens=400)
        await anext(streamed)
        await streamed.close()
        assert text_of(await ask(client)) == expected


async def test_closing_twice_is_closing_once(smollm2: Model) -> None:
    client = AsyncHybridClient(smollm2, context=64)
    await client.load()
    await client.close()
    await client.close()
    with pytest.raises(errors.Unavailable, match="closed"):
        await ask(client)
