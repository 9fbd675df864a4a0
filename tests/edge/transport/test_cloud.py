"""The cloud client against a server that does exactly what it is told, which is mostly wrong."""

from __future__ import annotations

import asyncio

import pytest
from hybrid.edge.transport.cloud import CloudClient
from hybrid.edge.transport.lane import Traffic
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import LocalOnly, Shareable, clear
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol import errors
from hybrid.tests.support.cleared import cleared
from hybrid.tests.support.scripted_server import (
    CLOSE,
    completion,
    response,
    says,
    scripted_server,
)


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
