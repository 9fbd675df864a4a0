"""The cloud client against a server that does exactly what it is told, which is mostly wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hybrid.edge.transport.cloud import CloudClient
from hybrid.edge.transport.lane import Traffic
from hybrid.router.policy import Policy
from hybrid.router.privacy import LocalOnly, Shareable, clear
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.scripted_server import (
    CLOSE,
    END,
    FOREVER,
    Received,
    Script,
    chunk,
    completion,
    event,
    piece,
    response,
    scripted_server,
    sse_head,
)

TOLD = [chunk("He"), chunk("llo"), chunk(finish="stop")]


def cleared(text: str = "Say hello.", **sampling: object) -> Shareable[RouteRequest]:
    params = SamplingParams(**sampling)  # type: ignore[arg-type]
    request = clear(RouteRequest.of([{"role": "user", "content": text}], sampling=params), Policy.default())
    assert isinstance(request, Shareable)
    return request


def says(*script: bytes | object):  # type: ignore[no-untyped-def]
    def answer(request: Received) -> Script:
        return script

    return answer


async def text_of(cloud: CloudClient, traffic: Traffic | None = None) -> str:
    chunks = [received async for received in cloud.stream(cleared(), traffic or Traffic())]
    return "".join(choice.delta.content or "" for received in chunks for choice in received.choices)


async def test_what_is_sent_is_what_was_cleared_and_asked() -> None:
    async with scripted_server(says(response(200, completion("hi")))) as server:
        cloud, traffic = CloudClient(server.url + "/v1/", "key"), Traffic()
        answer = await cloud.chat(cleared("Hi.", temperature=0.5, seed=7, max_tokens=9, stop=("x",), logprobs=2), traffic, "big")
        await cloud.close()
    assert answer.choices[0].message.content == "hi"
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].headers["authorization"] == "bearer key"
    assert server.requests[0].json() == {
        "messages": [{"role": "user", "content": "Hi."}],
        "model": "big",
        "temperature": 0.5,
        "seed": 7,
        "max_tokens": 9,
        "stop": ["x"],
        "logprobs": True,
        "top_logprobs": 2,
    }
    assert traffic.bytes_sent == server.bytes_received


async def test_only_what_privacy_has_cleared_is_accepted_and_else_no_connection_is_made() -> None:
    private = clear(RouteRequest.of("My e-mail is jane.roe@example.com"), Policy.default())
    assert isinstance(private, LocalOnly)
    forged = object.__new__(Shareable)
    async with scripted_server(says(response(200, completion("hi")))) as server:
        cloud = CloudClient(server.url)
        for value in (private, forged, private.value, "text", None):
            with pytest.raises(errors.NotShareable):
                await cloud.chat(value, Traffic())  # type: ignore[arg-type]
            with pytest.raises(errors.NotShareable):
                await anext(cloud.stream(value, Traffic()))  # type: ignore[arg-type]
            with pytest.raises(errors.NotShareable):
                await cloud.open_link(value, Traffic())  # type: ignore[arg-type]
        await cloud.close()
        assert server.connections == 0


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


@pytest.mark.parametrize("status", [204, 302, 304])
async def test_a_status_that_is_no_answer_is_the_cloud_s_fault(status: int) -> None:
    async with scripted_server(says(response(status, b"", "location: http://127.0.0.1:9/\r\n"))) as server:
        cloud = CloudClient(server.url)
        with pytest.raises(errors.CloudUnreachable, match=str(status)):
            await cloud.chat(cleared(), Traffic())
        await cloud.close()


async def test_an_error_of_any_length_is_the_error_it_says() -> None:
    async with scripted_server(says(response(429, b"<html>" * 100_000, "retry-after: 47\r\n"))) as server:
        cloud = CloudClient(server.url)
        with pytest.raises(errors.QuotaExceeded) as told:
            await cloud.chat(cleared(), Traffic())
        await cloud.close()
    assert told.value.retry_after_s == 47


@pytest.mark.parametrize("body", [b"", b"[]", b'{"id": "c"}', b"\xff", b'{"id": "\xff"}', b"[" * 100_000])
async def test_a_whole_answer_that_is_none_is_a_typed_error(body: bytes) -> None:
    async with scripted_server(says(response(200, body))) as server:
        cloud = CloudClient(server.url)
        with pytest.raises(errors.StreamInterrupted):
            await cloud.chat(cleared(), Traffic())
        await cloud.close()


async def test_a_retry_after_is_told_and_not_waited_for() -> None:
    busy = {"error": {"message": "too many", "type": "rate_limit_error", "param": None, "code": "quota_exceeded"}}
    async with scripted_server(says(response(429, busy, "retry-after: 47\r\n"))) as server:
        cloud = CloudClient(server.url)
        with pytest.raises(errors.QuotaExceeded) as told:
            await cloud.chat(cleared(), Traffic())
        await cloud.close()
    assert told.value.retry_after_s == 47
    assert len(server.requests) == 1


async def test_a_redirect_is_not_followed_with_the_prompt() -> None:
    async with scripted_server(says(response(307, b"", "location: http://127.0.0.1:9/\r\n"))) as server:
        cloud = CloudClient(server.url)
        with pytest.raises(errors.HybridError):
            await cloud.chat(cleared(), Traffic())
        await cloud.close()
    assert len(server.requests) == 1


async def test_a_connection_that_is_closed_without_an_answer_is_not_tried_again() -> None:
    async with scripted_server(says(CLOSE)) as server:
        cloud = CloudClient(server.url)
        with pytest.raises(errors.CloudUnreachable):
            await cloud.chat(cleared(), Traffic())
        await cloud.close()
    assert len(server.requests) == 1


@pytest.mark.parametrize("refusals", [1, 2])
async def test_a_refused_connection_is_tried_once_more(refusals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, attempts = asyncio.get_running_loop(), 0
    connect = loop.sock_connect

    async def refuse_first(*args: object) -> None:
        nonlocal attempts
        attempts += 1
        if attempts <= refusals:
            raise ConnectionRefusedError(111, "refused")
        await connect(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "sock_connect", refuse_first)
    async with scripted_server(says(response(200, completion("hi")))) as server:
        cloud, traffic = CloudClient(server.url), Traffic()
        if refusals == 1:
            assert (await cloud.chat(cleared(), traffic)).choices[0].message.content == "hi"
            assert traffic.bytes_sent == server.bytes_received
        else:
            with pytest.raises(errors.CloudUnreachable, match="no connection"):
                await cloud.chat(cleared(), traffic)
            assert traffic.bytes_sent == 0
        await cloud.close()
    assert attempts == 2


async def test_a_probe_measures_and_learns_and_tells_nothing() -> None:
    models = {"object": "list", "data": [{"id": "big", "created": 1, "owned_by": "x", "max_model_len": 99}]}

    def answer(request: Received) -> Script:
        yield response(200, models if request.path == "/v1/models" else {"status": "ok"})

    readings = iter([1.0, 5.0, 10.0, 11.5])
    async with scripted_server(answer) as server:
        cloud, traffic = CloudClient(server.url, clock=lambda: next(readings), probe_timeout_s=60), Traffic()
        link = await cloud.probe(traffic)
        await cloud.close()
    assert server.connections == 1
    assert (link.reachable, link.rtt_s, link.cloud_context) == (True, 1.5, 99)
    assert cloud.model == "big"
    assert [(r.method, r.path, r.body) for r in server.requests] == [
        ("GET", "/health", b""),
        ("GET", "/health", b""),
        ("GET", "/v1/models", b""),
    ]
    assert traffic.bytes_sent == server.bytes_received


@pytest.mark.parametrize("models", [b"", b"<html>", b"[" * 100_000, b'{"data": [{"id": "\xff"}]}', b'{"data": []}'])
async def test_a_cloud_that_cannot_name_its_models_is_reachable_all_the_same(models: bytes) -> None:
    async with scripted_server(lambda request: [response(200, models if request.path == "/v1/models" else {})]) as server:
        cloud = CloudClient(server.url, probe_timeout_s=60)
        assert (await cloud.probe(Traffic())).reachable
        assert cloud.model is None
        await cloud.close()


async def test_a_cloud_that_is_gone_or_unwell_is_not_reachable() -> None:
    cloud = CloudClient("http://127.0.0.1:9")
    assert not (await cloud.probe(Traffic())).reachable
    await cloud.close()
    async with scripted_server(says(response(503, b""))) as server:
        cloud = CloudClient(server.url)
        assert not (await cloud.probe(Traffic())).reachable
        await cloud.close()
    async with scripted_server(says(FOREVER)) as server:
        cloud = CloudClient(server.url, probe_timeout_s=0.1)
        assert not (await cloud.probe(Traffic())).reachable
        await cloud.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://host",
        "http://",
        "http://[::1",
        "http://host:port",
        "http://host:99999",
        "http://ho st",
        "http://" + "a" * 64,
        "http://host?x=1",
        "http://host/#f",
        "http://user:sesame@host",
    ],
)
def test_an_address_that_is_none_is_a_configuration_error_and_shows_no_password(url: str) -> None:
    with pytest.raises(errors.ConfigError) as told:
        CloudClient(url)
    assert "sesame" not in str(told.value)


@pytest.mark.parametrize("url", ["http://host", "http://host/", "http://host/v1", " http://host/v1/", "HTTP://host"])
def test_an_address_may_be_written_as_people_do(url: str) -> None:
    assert CloudClient(url).url == "http://host"


@pytest.mark.parametrize("key", ["sesame\n", "sesame\x00", "s\N{LATIN SMALL LETTER E WITH ACUTE}same"])
def test_a_key_that_no_header_can_carry_is_a_configuration_error_and_not_shown(key: str) -> None:
    with pytest.raises(errors.ConfigError) as told:
        CloudClient("http://host", key)
    assert "same" not in str(told.value)
