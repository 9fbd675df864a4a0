"""Tokens a minute of each key, reserved when a request is let in."""

from __future__ import annotations

import asyncio

from hybrid.cloud.server.keys import KeyRing
from hybrid.tests.cloud.server.conftest import USER, Bench, Start

KEYS = {"keys": KeyRing({"anna": "secret-a", "ben": "secret-b"}, admin="secret-admin")}
PROMPT = "x" * 9  # of the byte model: a token each, and the first one


class Stopped:
    """A clock in which nothing fills."""

    def __call__(self) -> float:
        return 1000.0


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


async def complete(bench: Bench, secret: str, **fields: object):  # type: ignore[no-untyped-def]
    return await bench.post("/v1/completions", {"prompt": PROMPT} | fields, headers=bearer(secret))


async def prompt_len(start: Start) -> int:
    return (await (await start()).complete(prompt=PROMPT, max_tokens=1)).json["usage"]["prompt_tokens"]


async def test_five_at_once_of_sixty_against_a_hundred_a_minute_are_one_and_four_refusals(start: Start) -> None:
    """Row H67: reserved at admission. What one gives back early may let another in, never more than the limit."""
    output = 60 - await prompt_len(start)
    bench = await start(b"y" * 200, automatic=False, tokens_per_minute=100, **KEYS)
    running = [asyncio.create_task(complete(bench, "secret-a", max_tokens=output)) for _ in range(5)]
    done, waiting = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    while len(done) < 4:
        more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        done |= more
    for task in done:
        answer = task.result()
        assert answer.status == 429
        assert answer.error["code"] == "quota_exceeded"
        assert 1 <= int(answer.headers["retry-after"]) <= 12  # 20 tokens are missing, 100 come in a minute
    assert len(bench.engine.added) == 1
    other = asyncio.create_task(complete(bench, "secret-b", max_tokens=output))
    await bench.settled(lambda: len(bench.engine.added) == 2)  # another key has its own
    for task in (*waiting, other):
        task.cancel()


async def test_a_request_larger_than_a_minute_is_refused_at_once_and_not_told_to_wait(start: Start) -> None:
    bench = await start(tokens_per_minute=100, **KEYS)
    for stream in (False, True):
        answer = await complete(bench, "secret-a", max_tokens=101, stream=stream)
        assert (answer.status, answer.error["code"]) == (403, "request_exceeds_quota")
        assert "retry-after" not in answer.headers
    assert bench.engine.added == []


async def test_what_was_not_used_comes_back_and_streams_are_charged_as_whole_answers(start: Start) -> None:
    prompt = await prompt_len(start)
    used = prompt + 2  # "Hi"
    for stream in (False, True):
        bench = await start(b"Hi", tokens_per_minute=3 * used + 10, **KEYS)
        limit = 2 * used + 10 - prompt  # fits while at most one answer was charged, as large as it was
        statuses = [(await complete(bench, "secret-a", max_tokens=limit, stream=stream)).status for _ in range(3)]
        assert statuses == [200, 200, 429]


async def test_an_answer_without_a_limit_is_let_in_and_charged_for_what_it_took(start: Start) -> None:
    bench = await start(b"z" * 500, tokens_per_minute=200, max_model_len=8192, **KEYS)
    chat = {"messages": USER}
    assert (await bench.post("/v1/chat/completions", chat, headers=bearer("secret-a"))).status == 200
    assert (await complete(bench, "secret-a", max_tokens=1)).status == 429  # it took more than was there


async def test_a_limit_of_zero_lets_nothing_through_and_the_admin_has_none(start: Start) -> None:
    bench = await start(tokens_per_minute=0, **KEYS)
    assert (await complete(bench, "secret-a", max_tokens=1)).status == 403
    assert (await complete(bench, "secret-admin", max_tokens=1)).status == 200


async def test_every_answer_says_what_its_key_has_left(start: Start) -> None:
    clock = Stopped()
    prompt = await prompt_len(start)
    used = prompt + 2  # "Hi"
    bench = await start(b"Hi", tokens_per_minute=60, **KEYS)
    bench.server.app.service.key_quotas._clock = clock
    for stream, status, left in ((False, 200, 60 - used), (True, 200, 60 - used - prompt - 10), (False, 429, 60 - 2 * used)):
        answer = await complete(bench, "secret-a", max_tokens=10 if status == 200 else 60 - prompt, stream=stream)
        assert answer.status == status
        told = {name.lower(): value for name, value in answer.headers.items() if name.lower().startswith("x-ratelimit-")}
        # a stream begins before its answer is charged: what it has reserved is not there
        assert told == {
            "x-ratelimit-limit-tokens": "60",
            "x-ratelimit-remaining-tokens": str(left),
            "x-ratelimit-reset-tokens": f"{60 - left}s",
        }
    for answer in (await complete(bench, "secret-admin"), await bench.get("/v1/models", headers=bearer("secret-a"))):
        assert not [name for name in answer.headers if name.lower().startswith("x-ratelimit-")]
