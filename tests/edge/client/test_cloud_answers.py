"""What the cloud answers is passed on, counted, and taken only as it was asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hybrid.edge.client import AsyncHybridClient
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.openai import Span
from hybrid.tests.support.scripted_client import PRIVATE, STREAMED, TO_CLOUD, TO_EDGE, ask, client_of, failing, stream, text_of, told, well
from hybrid.tests.support.scripted_server import (
    END,
    Received,
    Script,
    completion,
    event,
    response,
    sse_head,
)


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


async def test_the_request_s_own_fault_is_told_and_goes_nowhere_else(smollm2: Model) -> None:
    wrong = response(400, {"error": {"message": "bad model", "type": "t", "param": "model", "code": "invalid_request"}})
    async with client_of(smollm2, TO_CLOUD, failing(wrong)) as (client, _):
        with pytest.raises(errors.InvalidRequest, match="bad model"):
            await ask(client)


@pytest.mark.parametrize("name", ["router", "router-x", "nan", "1.5", "x" * 10_000])
async def test_a_model_that_the_cloud_does_not_have_is_told_as_that_and_the_next_request_is_answered(name: str) -> None:
    """Row G63."""
    missing = response(404, {"error": {"message": "there is no such model", "type": "t", "param": "model", "code": "model_not_found"}})

    def answer(request: Received) -> Script:
        return [missing] if request.method == "POST" and request.json().get("model") == name else well(request)

    async with client_of(None, TO_CLOUD, answer) as (client, _):
        with pytest.raises(errors.ModelNotFound):
            await ask(client, model=name)
        assert text_of(await ask(client)) == "from afar"
        with pytest.raises(errors.InvalidRequest):
            await ask(client, model="\ud800")


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
