"""Bodies that are not one JSON object of a decent size: each is a small typed error, and the next request is served."""

import json

import pytest
from hybrid.tests.cloud.server.conftest import USER, Start

NO_OBJECTS = [
    b'"x"',
    b"[1]",
    b"42",
    b"null",
    b"",
    b"{",
    b'{"messages": {}}',
    b'{"messages": [' + b'{"role": "user", "content": [1, "2", {}]},' * 100 + b"1]}",
    b'{"messages": ' + b"[" * 3000 + b"]" * 3000 + b"}",
    b'{"messages": [{"role": "user", "content": "\xff"}]}',
    b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
    b'{"temperature": NaN, "messages": [{"role": "user", "content": "x"}]}',
]


async def test_a_body_that_is_no_proper_object_is_a_small_400(start: Start) -> None:
    bench = await start()
    for raw in NO_OBJECTS:
        for path in ("/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"):
            answer = await bench.call("POST", path, data=raw, headers={"content-type": "application/json"})
            assert answer.status == 400
            assert answer.error["type"] == "invalid_request_error"
            assert len(answer.raw) < 2_000
            assert b".py" not in answer.raw
    assert (await bench.chat(max_tokens=1)).status == 200


async def test_a_million_bad_items_make_one_small_error(start: Start) -> None:
    bench = await start()
    raw = b'{"messages": [' + b"1," * 1_000_000 + b"1]}"
    answer = await bench.call("POST", "/v1/chat/completions", data=raw, headers={"content-type": "application/json"})
    assert answer.status == 400
    assert len(answer.raw) < 1_000


async def test_long_lists_are_refused_with_their_limit(start: Start) -> None:
    bench = await start()
    for path, fields in (
        ("/v1/completions", {"prompt": ["a"] * 10_001}),
        ("/v1/completions", {"prompt": [[]] * 10_001}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * 10_001}]}),
        ("/v1/chat/completions", {"messages": USER * 10_001}),
        ("/tokenize", {"messages": USER * 10_001}),
    ):
        answer = await bench.post(path, fields)
        assert answer.status == 400
        assert "10000" in answer.error["message"]


async def test_a_body_that_does_not_say_it_is_json_is_a_415(start: Start) -> None:
    bench = await start()
    raw = json.dumps({"messages": USER}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""):
        headers = {"content-type": kind} if kind else {}
        answer = await bench.call("POST", "/v1/chat/completions", data=raw, headers=headers, skip_auto_headers=["content-type"])
        assert answer.status == 415
        assert answer.error["code"] == "unsupported_media_type"


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_a_413_that_names_the_limit(start: Start, chunked: bool) -> None:
    bench = await start(max_body_bytes=1_000)
    raw = json.dumps({"messages": [{"role": "user", "content": "x" * 2_000}]}).encode()

    async def pieces():
        yield raw[:600]
        yield raw[600:]

    answer = await bench.call(
        "POST", "/v1/chat/completions", data=pieces() if chunked else raw, headers={"content-type": "application/json"}
    )
    assert answer.status == 413
    assert answer.error["code"] == "payload_too_large"
    assert "1000" in answer.error["message"]
