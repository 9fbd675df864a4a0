"""A cloud that fails is asked once, and the device answers where it still can."""

from __future__ import annotations

import pytest
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.openai import Span
from hybrid.tests.support.scripted_client import ASK, STREAMED, TO_CLOUD, ask, client_of, failing, stream, text_of, told
from hybrid.tests.support.scripted_server import (
    CLOSE,
    END,
    event,
    response,
    sse_head,
)

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
