"""The SDK with a real model on the device, and a cloud that does what each test needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.device_state import SimulatedDevice
from hybrid.edge.native import NativeRuntime
from hybrid.edge.session import Session
from hybrid.router.policy import Policy
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.openai import ChatCompletion, ChatCompletionChunk, Span
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.scripted_server import (
    CLOSE,
    END,
    Received,
    Script,
    ScriptedServer,
    chunk,
    completion,
    event,
    response,
    scripted_server,
    sse_head,
)

ASK = [{"role": "user", "content": "Say hello."}]
PRIVATE = [{"role": "user", "content": "Write to jane.roe@example.com, please."}]
TO_EDGE = "[complexity]\ncascade_from = 1.0\nhard_from = 1.0\n"
TO_CLOUD = '[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "off"\n'
CASCADE = "[complexity]\ncascade_from = 0.0\nhard_from = 1.0\n[confidence]\nthreshold = "
STREAMED = (chunk("Hi "), chunk("there"), chunk(finish="stop"))
USAGE = event(
    {
        "id": "c",
        "created": 1,
        "model": "big",
        "choices": [],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }
)


def well(request: Received) -> Script:
    """A cloud in good health."""
    if request.method == "GET":
        return [response(200, {"object": "list", "data": [{"id": "big", "created": 1, "owned_by": "x"}]})]
    if request.json().get("stream"):
        return [sse_head(), *STREAMED, USAGE, event("[DONE]"), END]
    return [response(200, completion("from afar"))]


def failing(*script: bytes | object) -> Callable[[Received], Script]:
    """In good health until it is asked for an answer."""
    return lambda request: well(request) if request.method == "GET" else script


@asynccontextmanager
async def client_of(
    edge: Model | str | None, policy: str, answer: Callable[[Received], Script] | None = None, **options: Any
) -> AsyncIterator[tuple[AsyncHybridClient, ScriptedServer]]:
    async with scripted_server(answer or well) as server:
        options = {"context": 512, "device_state": SimulatedDevice(), "probe_timeout_s": 60} | options
        async with AsyncHybridClient(edge, None if answer is None else server.url, policy=Policy.parse(policy), **options) as client:
            yield client, server


async def ask(client: AsyncHybridClient, messages: Any = ASK, **options: Any) -> ChatCompletion:
    options = {"max_tokens": 6, "seed": 3, "temperature": 0.8} | options
    answer = await client.chat.completions.create(messages=messages, **options)
    assert isinstance(answer, ChatCompletion)
    assert answer.hybrid is not None
    return answer


async def stream(client: AsyncHybridClient, messages: Any = ASK, **options: Any) -> list[ChatCompletionChunk]:
    options = {"max_tokens": 6, "seed": 3, "temperature": 0.8} | options
    return [received async for received in await client.chat.completions.create(messages=messages, stream=True, **options)]


def text_of(answer: ChatCompletion | list[ChatCompletionChunk]) -> str:
    if isinstance(answer, ChatCompletion):
        return answer.choices[0].message.content or ""
    return "".join(choice.delta.content or "" for received in answer for choice in received.choices)


def told(answer: ChatCompletion) -> tuple[object, ...]:
    assert answer.hybrid is not None
    return (answer.hybrid.route, answer.hybrid.reason, [(span.origin, span.tokens) for span in answer.hybrid.spans])


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
        with pytest.raises(TypeError, match="tools"):
            await ask(client, tools=[{"type": "function", "function": {"name": "f"}}])
        with pytest.raises(errors.InvalidRequest, match="temperature"):
            await ask(client, temperature=3)
        with pytest.raises(errors.InvalidRequest, match="messages"):
            await ask(client, messages=[])
        with pytest.raises(errors.ContextOverflow) as long:
            await ask(client, messages=[{"role": "user", "content": "word " * 600}])
        assert long.value.asked > long.value.limit == 512
        assert text_of(await ask(client, max_completion_tokens=2)) == text_of(await ask(client, max_tokens=2))


async def test_the_cloud_answers_and_every_byte_is_counted(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD, well) as (client, server):
        answer = await ask(client, model="big", stop="x")
        assert answer.hybrid is not None
        assert answer.hybrid.bytes_sent == server.bytes_received
    assert text_of(answer) == "from afar"
    assert told(answer) == ("cloud", "hard", [("cloud", 3)])
    body = server.requests[-1].json()
    assert (body["seed"], body["model"], body["stop"], body["max_tokens"]) == (3, "big", ["x"], 6)


async def test_the_cloud_s_stream_is_passed_on(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD, well) as (client, _):
        chunks = await stream(client)
    assert text_of(chunks) == "Hi there"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 2
    assert chunks[-1].hybrid is not None
    assert chunks[-1].hybrid.spans == [Span("cloud", 2)]
    assert [received.choices[0].finish_reason for received in chunks] == [None, None, "stop"]


BUSY = response(429, {"error": {"message": "wait", "type": "t", "param": None, "code": "quota_exceeded"}}, "retry-after: 47\r\n")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ((BUSY,), "quota_degraded"),
        ((response(503, b""),), "cloud_unreachable"),
        ((response(500, b""),), "cloud_unreachable"),
        ((CLOSE,), "cloud_unreachable"),
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{", CLOSE), "cloud_unreachable"),
        ((sse_head(), event("{broken"), event("[DONE]"), END), "cloud_unreachable"),
    ],
)
async def test_a_cloud_that_fails_is_asked_once_and_the_device_answers(
    smollm2: Model, script: tuple[bytes | object, ...], reason: str, streamed: bool
) -> None:
    async with client_of(smollm2, TO_CLOUD, failing(*script)) as (client, server):
        if streamed:
            chunks = await stream(client)
            info, text = chunks[-1].hybrid, text_of(chunks)
        else:
            answer = await ask(client)
            info, text = answer.hybrid, text_of(answer)
        assert info is not None
        assert (info.route, info.reason, info.spans) == ("edge", reason, [Span("edge", 6)])
        assert info.bytes_sent == server.bytes_received
        assert sum(request.method == "POST" for request in server.requests) == 1
    assert text


def counting(tokens: int) -> dict[str, Any]:
    """A chunk or an answer that says it has used so many tokens."""
    return completion("from afar") | {"usage": {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}}


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_cloud_cannot_give_tokens_back(smollm2: Model, streamed: bool) -> None:
    script = (
        sse_head(),
        STREAMED[0],
        STREAMED[2],
        event(counting(-9) | {"object": "chat.completion.chunk", "choices": []}),
        event("[DONE]"),
        END,
    )
    async with client_of(smollm2, TO_CLOUD, failing(*(script if streamed else [response(200, counting(-9))]))) as (client, _):
        if streamed:
            with pytest.raises(errors.StreamInterrupted):
                await stream(client)
        else:
            assert told(await ask(client))[:2] == ("edge", "cloud_unreachable")


@pytest.mark.parametrize("streamed", [False, True])
async def test_another_choice_than_the_one_that_was_asked_for_is_not_mixed_in(smollm2: Model, streamed: bool) -> None:
    other = {"index": 1, "delta": {"content": "other"}, "message": {"role": "assistant", "content": "other"}, "finish_reason": "stop"}
    whole = completion("from afar")
    part = whole | {"object": "chat.completion.chunk", "choices": [other], "usage": None}
    script = (sse_head(), event(part), *STREAMED, event("[DONE]"), END)
    both = [response(200, whole | {"choices": [other, *whole["choices"]]})]  # type: ignore[misc]
    async with client_of(smollm2, TO_CLOUD, failing(*(script if streamed else both))) as (client, _):
        answer = await (stream(client) if streamed else ask(client))
        assert text_of(answer) == ("Hi there" if streamed else "from afar")
    only = response(200, whole | {"choices": [other]})
    async with client_of(smollm2, TO_CLOUD, failing(only)) as (client, _):
        assert told(await ask(client))[:2] == ("edge", "cloud_unreachable")


async def test_a_cloud_that_is_gone_is_not_looked_for_by_every_request(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD, failing(CLOSE)) as (client, server):
        first, connections = await ask(client), server.connections
        second = await ask(client)
        assert server.connections == connections
    assert told(first) == told(second) == ("edge", "cloud_unreachable", [("edge", 6)])


async def test_a_stream_cut_after_its_first_words_fails_and_repeats_nothing(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD, failing(sse_head(), STREAMED[0], CLOSE)) as (client, server):
        received = []
        with pytest.raises(errors.StreamInterrupted):
            async for part in await client.chat.completions.create(messages=ASK, stream=True):
                received.append(part)  # noqa: PERF401 (what came before the error is wanted)
    assert text_of(received) == "Hi "
    assert sum(request.method == "POST" for request in server.requests) == 1


async def test_the_request_s_own_fault_is_told_and_goes_nowhere_else(smollm2: Model) -> None:
    wrong = response(400, {"error": {"message": "bad model", "type": "t", "param": "model", "code": "invalid_request"}})
    async with client_of(smollm2, TO_CLOUD, failing(wrong)) as (client, _):
        with pytest.raises(errors.InvalidRequest, match="bad model"):
            await ask(client)


async def test_a_confident_answer_of_the_device_is_kept(smollm2: Model) -> None:
    async with client_of(smollm2, CASCADE + "0.0", well) as (client, server):
        answer, chunks = await ask(client), await stream(client)
        assert all(request.method == "GET" for request in server.requests)
    assert told(answer) == ("edge", "simple", [("edge", 6)])
    assert text_of(chunks) == text_of(answer)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_doubtful_one_is_not_shown_and_the_cloud_answers(smollm2: Model, streamed: bool) -> None:
    async with client_of(smollm2, CASCADE + "1.0", well) as (client, _):
        if streamed:
            chunks = await stream(client)
            assert text_of(chunks) == "Hi there"
            assert chunks[-1].hybrid is not None
            assert chunks[-1].hybrid.route == "cascade"
        else:
            answer = await ask(client)
            assert text_of(answer) == "from afar"
            assert told(answer) == ("cascade", "low_confidence", [("cloud", 3)])


async def test_a_cascade_asks_the_cloud_for_the_model_that_was_named_not_for_the_device_s(smollm2: Model) -> None:
    async with client_of(smollm2, CASCADE + "1.0", well) as (client, server):
        answers = [await ask(client), await ask(client, model="huge")]
    asked = [request.json().get("model") for request in server.requests if request.method == "POST"]
    assert asked == [None, "huge"]
    assert [answer.model for answer in answers] == ["big", "big"]


async def test_a_doubtful_answer_is_better_than_none_and_is_not_computed_twice(smollm2: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    generate = Session.generate

    def counted(self: Session, *args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return generate(self, *args, **options)

    monkeypatch.setattr(Session, "generate", counted)
    async with client_of(smollm2, CASCADE + "1.0", failing(response(503, b""))) as (client, _):
        answer = await ask(client)
    assert told(answer) == ("edge", "cloud_unreachable", [("edge", 6)])
    assert calls == 1


async def test_a_private_conversation_stays_and_stays_private(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD, well) as (client, server):
        first = await ask(client, PRIVATE, conversation="c1")
        later = await ask(client, ASK, conversation="c1")
        assert server.connections == 0
        other = await ask(client, ASK, conversation="c2")
        client.forget("c1")
        fresh = await ask(client, ASK, conversation="c1")
    assert told(first)[:2] == told(later)[:2] == ("edge", "private")
    assert told(other)[:2] == told(fresh)[:2] == ("cloud", "hard")


async def test_a_refusal_says_why(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD + "[privacy]\ntoo_hard_from = 0.0\n", well) as (client, server):
        with pytest.raises(errors.RouteRefused) as refused:
            await ask(client, PRIVATE)
        assert refused.value.code == "private_too_hard"
        with pytest.raises(errors.RouteRefused) as refused:
            await client.chat.completions.create(messages=PRIVATE, stream=True)
        assert refused.value.code == "private_too_hard"
        assert "jane" not in str(refused.value)
        assert server.connections == 0


async def test_a_drained_quota_degrades_and_says_so(smollm2: Model) -> None:
    quota = "[quota]\ncapacity = 60\nrefill_per_s = 0.0\n"
    async with client_of(smollm2, TO_CLOUD + quota, well, clock=lambda: 0.0) as (client, _):
        answers = [await ask(client) for _ in range(9)]
        other = await ask(client, user="someone else")
    routes = [told(answer)[:2] for answer in answers]
    # the prompt is estimated by the device at about 30 tokens, the answer at 6; each costs 8 once the cloud has told
    cloud = routes.index(("edge", "quota_degraded"))
    assert routes == [("cloud", "hard")] * cloud + [("edge", "quota_degraded")] * (9 - cloud)
    assert 1 <= cloud <= 7
    assert told(other)[:2] == ("cloud", "hard")


async def test_parallel_requests_never_reserve_more_than_there_is(smollm2: Model) -> None:
    prompt = len(smollm2.render_chat(ASK))
    quota = f"[quota]\ncapacity = {2 * (prompt + 6) + 3}\nrefill_per_s = 0.0\n"
    async with client_of(smollm2, TO_CLOUD + quota, well, clock=lambda: 0.0) as (client, server):
        answers = await asyncio.gather(*(ask(client) for _ in range(5)))
        assert sum(request.method == "POST" for request in server.requests) <= 4  # two at a time, each gives back what it did not use
    assert sorted({told(answer)[1] for answer in answers}) in (["hard"], ["hard", "quota_degraded"])


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


async def test_a_device_that_fails_leaves_the_request_to_the_cloud_unless_it_is_private(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise MemoryError

    async with client_of(smollm2, TO_EDGE, well) as (client, server):
        await client.load()
        monkeypatch.setattr(Session, "generate", broken)
        with pytest.raises(errors.RouteRefused) as refused:
            await ask(client, PRIVATE)
        assert refused.value.code == "edge_unavailable"
        assert server.connections == 0
        answer = await ask(client)
    assert told(answer) == ("cloud", "edge_unavailable", [("cloud", 3)])


async def test_a_device_whose_model_does_not_load_is_one_that_fails_but_a_wrong_name_is_told(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise MemoryError

    async with client_of(smollm2, TO_EDGE, well) as (client, server):
        with monkeypatch.context() as patch:
            patch.setattr(NativeRuntime, "__init__", broken)
            with pytest.raises(errors.RouteRefused) as refused:
                await ask(client, PRIVATE)
            assert refused.value.code == "edge_unavailable"
            assert server.connections == 0
            assert told(await ask(client)) == ("cloud", "edge_unavailable", [("cloud", 3)])
        assert told(await ask(client)) == ("edge", "simple", [("edge", 6)])
    async with client_of("no-such-model", TO_EDGE, well) as (client, server):
        with pytest.raises(errors.ModelNotFound):
            await ask(client)
        assert server.connections == 0


async def test_when_all_fail_the_error_lists_them(smollm2: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Session, "generate", broken)
    async with client_of(smollm2, TO_CLOUD, failing(response(503, b""))) as (client, server):
        with pytest.raises(errors.HybridError, match=r"cloud: .*edge: ") as gone:
            await ask(client)
        assert gone.value.code in ("cloud_unreachable", "edge_unavailable")
        assert sum(request.method == "POST" for request in server.requests) == 1


async def test_without_a_device_the_cloud_is_all_there_is() -> None:
    async with client_of(None, TO_EDGE, well) as (client, _):
        assert told(await ask(client))[:2] == ("cloud", "edge_unavailable")
        with pytest.raises(errors.RouteRefused):
            await ask(client, PRIVATE)
    async with AsyncHybridClient(None, "http://127.0.0.1:9") as client:
        with pytest.raises(errors.CloudUnreachable):
            await ask(client)
    with pytest.raises(errors.ConfigError):
        AsyncHybridClient(None)


async def test_closing_twice_is_closing_once(smollm2: Model) -> None:
    client = AsyncHybridClient(smollm2, context=64)
    await client.load()
    await client.close()
    await client.close()
    with pytest.raises(errors.Unavailable, match="closed"):
        await ask(client)
