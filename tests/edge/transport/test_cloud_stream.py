"""A stream from the cloud, whole or broken off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hybrid.edge.transport.cloud import CloudClient
from hybrid.edge.transport.lane import Traffic
from hybrid.shared_protocol import errors
from hybrid.tests.support.cleared import cleared
from hybrid.tests.support.scripted_server import (
    CLOSE,
    END,
    FOREVER,
    chunk,
    event,
    piece,
    says,
    scripted_server,
    sse_head,
)

TOLD = [chunk("He"), chunk("llo"), chunk(finish="stop")]


async def text_of(cloud: CloudClient, traffic: Traffic | None = None) -> str:
    chunks = [received async for received in cloud.stream(cleared(), traffic or Traffic())]
    return "".join(choice.delta.content or "" for received in chunks for choice in received.choices)


async def test_a_stream_ends_with_done() -> None:
    async with scripted_server(says(sse_head(), piece(b": ping\n\n"), *TOLD, event("[DONE]"), END)) as server:
        cloud = CloudClient(server.url)
        assert await text_of(cloud) == "Hello"
        await cloud.close()
    assert server.requests[0].json()["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("script", "says_what"),
    [
        ((sse_head(), *TOLD, END), "before it was done"),
        ((sse_head(), *TOLD, CLOSE), "cut off"),
        ((sse_head(), TOLD[0], event('{"id": tru'), *TOLD, event("[DONE]"), END), "no ChatCompletionChunk"),
        ((sse_head(), TOLD[0], event({"unexpected": 1}), event("[DONE]"), END), "no ChatCompletionChunk"),
        ((sse_head(), TOLD[0], FOREVER), "silent for 0.2 s"),
        ((sse_head(), TOLD[0], event("[" * 100_000), event("[DONE]"), END), "no ChatCompletionChunk"),
        ((sse_head(), TOLD[0], piece(b"data: \xff\n\n"), event("[DONE]"), END), "no ChatCompletionChunk"),
    ],
)
async def test_a_stream_that_breaks_off_is_a_typed_error(script: tuple[bytes | object, ...], says_what: str) -> None:
    async with scripted_server(says(*script)) as server:
        cloud = CloudClient(server.url, stall_s=0.2)
        with pytest.raises(errors.StreamInterrupted, match=says_what):
            await text_of(cloud)
        await cloud.close()
    assert len(server.requests) == 1


async def test_a_stream_that_never_begins_is_not_waited_for_as_long_as_a_whole_answer() -> None:
    async with scripted_server(says(FOREVER)) as server:
        cloud = CloudClient(server.url, stall_s=0.2, answer_timeout_s=3600)
        with pytest.raises(errors.CloudUnreachable, match="did not answer"):
            await text_of(cloud)
        await cloud.close()


async def test_an_error_inside_a_stream_is_the_error_it_says() -> None:
    failed = event({"error": {"message": "it broke", "type": "server_error", "param": None, "code": "engine_failed"}})
    async with scripted_server(says(sse_head(), TOLD[0], failed, event("[DONE]"), END)) as server:
        cloud = CloudClient(server.url)
        with pytest.raises(errors.EngineFailed, match="it broke"):
            await text_of(cloud)
        await cloud.close()


async def test_comments_do_not_keep_a_stream_alive_for_ever() -> None:
    def comments() -> Iterator[bytes]:
        yield sse_head()
        while True:
            yield piece(b": ping\n\n")

    async with scripted_server(lambda request: comments()) as server:
        cloud = CloudClient(server.url, answer_timeout_s=0.2)
        with pytest.raises(errors.StreamInterrupted, match=r"silent for 0\.2 s"):
            await text_of(cloud)
        await cloud.close()
