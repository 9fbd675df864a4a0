"""The SDK's own quota of cloud tokens."""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.client.meter import Meter
from hybrid.router.policy.policy import Policy
from hybrid.router.quota.account import Account, Use
from hybrid.router.quota.quotas import Quotas
from hybrid.router.quota.store import MemoryStore
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import (
    ASK,
    STREAMED,
    TO_CLOUD,
    ask,
    client_of,
    client_of_several,
    failing,
    stream,
    told,
    well,
)
from hybrid.tests.support.scripted_server import CLOSE, END, FOREVER, Received, Script, chunk, completion, event, response, sse_head


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


def left(client: AsyncHybridClient, user: str = "local", tenant: str | None = None) -> float:
    quotas = client._services.meter._quotas
    return quotas.view(Account(user, tenant), 0.0).available


def telling(prompt: int, output: int) -> Callable[[Received], Script]:
    """A cloud that says what an answer took, streamed or whole."""
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}

    def answer(request: Received) -> Script:
        if request.method == "GET":
            return well(request)
        if request.json().get("stream"):
            end = event({"id": "c", "created": 1, "model": "big", "choices": [], "usage": usage})
            return [sse_head(), *STREAMED, end, event("[DONE]"), END]
        return [response(200, completion("from afar") | {"usage": usage})]

    return answer


FIXED = TO_CLOUD + "[quota]\ncapacity = 1000\nrefill_per_s = 0\n"


async def test_a_streamed_answer_is_charged_exactly_as_a_whole_one() -> None:
    async with client_of(None, FIXED, telling(17, 25), clock=lambda: 0.0) as (client, _):
        await ask(client, user="whole")
        await stream(client, user="streamed")
        assert left(client, "whole") == left(client, "streamed") == 1000 - 42


async def test_who_hangs_up_in_mid_stream_is_charged_once_for_what_was_produced_and_the_cloud_is_told() -> None:
    """The connection is closed, by which a server knows that nobody reads on."""
    script = [sse_head(), *(chunk(f"{n} ") for n in range(7)), FOREVER]
    async with client_of(None, FIXED, failing(*script), clock=lambda: 0.0) as (client, server):
        answer = await client.chat.completions.create(messages=ASK, stream=True, max_tokens=100)
        received = [await anext(answer) for _ in range(7)]
        assert len(received) == 7
        estimate = left(client)  # all is reserved: the prompt, estimated without a tokenizer, and a hundred tokens
        assert not server.left.is_set()
        await answer.close()
        await answer.close()
        async with asyncio.timeout(40):
            await server.left.wait()
        prompt = 1000 - 100 - estimate
        assert left(client) == 1000 - prompt - 7


async def test_one_who_leaves_after_the_last_chunk_has_paid_for_the_answer_and_for_nothing_more() -> None:
    async with client_of(None, FIXED, telling(17, 25), clock=lambda: 0.0) as (client, _):
        answer = await client.chat.completions.create(messages=ASK, stream=True, max_tokens=100)
        chunks = [part async for part in answer]
        await answer.close()
        assert left(client) == 1000 - 42
    assert chunks[-1].hybrid is not None
    assert [attempt.tokens for attempt in chunks[-1].hybrid.attempts] == [42]


async def test_a_prompt_that_is_computed_again_is_charged_again_and_the_answer_says_so() -> None:
    policy = FIXED + '[fallback]\nmid_stream = "restart"\n'
    broken = failing(sse_head(), *(chunk(f"{n} ") for n in range(7)), CLOSE)
    async with client_of_several(None, policy, {"a": broken, "b": telling(17, 25)}, clock=lambda: 0.0) as (client, _):
        info = (await stream(client, max_tokens=100))[-1].hybrid
        assert info is not None
        first, second = info.attempts
        assert (first.target, first.outcome) == ("a", "stream_interrupted") and first.tokens > 7
        assert (second.target, second.outcome, second.tokens) == ("b", "answered", 42)
        assert left(client) == 1000 - 42 - first.tokens


async def test_an_attempt_that_computed_nothing_is_charged_nothing() -> None:
    answers = {"a": failing(response(503, b"")), "b": telling(17, 25)}
    async with client_of_several(None, FIXED, answers, clock=lambda: 0.0) as (client, _):
        info = (await ask(client)).hybrid
        assert info is not None
        assert [attempt.tokens for attempt in info.attempts] == [0, 42]
        assert left(client) == 1000 - 42


async def test_too_little_for_now_tells_how_long_to_wait_and_too_much_for_ever_does_not() -> None:
    policy = TO_CLOUD + '[quota]\ncapacity = 200\nrefill_per_s = 3\non_exhausted = "refuse"\n'
    async with client_of(None, policy, telling(17, 150), clock=lambda: 0.0) as (client, server):
        await ask(client, max_tokens=150)
        with pytest.raises(errors.OverQuota) as later:
            await ask(client, max_tokens=150)
        with pytest.raises(errors.RequestExceedsQuota) as never:
            await ask(client, max_tokens=201)
        assert sum(request.method == "POST" for request in server.requests) == 1
    assert isinstance(later.value, errors.RouteRefused)
    assert (later.value.status, later.value.code) == (429, "over_quota")
    assert later.value.retry_after_s is not None and math.ceil(later.value.retry_after_s) > 0
    assert (never.value.status, never.value.code, never.value.retry_after_s) == (403, "request_exceeds_quota", None)


async def test_user_and_tenant_both_apply() -> None:
    policy = TO_CLOUD + '[quota]\ncapacity = 300\nrefill_per_s = 0\ntenant_capacity = 400\non_exhausted = "refuse"\n'
    async with client_of(None, policy, telling(50, 100), clock=lambda: 0.0, tenant="acme") as (client, _):
        await ask(client, user="ann", max_tokens=100)
        await ask(client, user="ann", max_tokens=100)
        with pytest.raises(errors.OverQuota):  # hers
            await ask(client, user="ann", max_tokens=100)
        with pytest.raises(errors.OverQuota, match="for this tenant"):  # 100 left of 400
            await ask(client, user="bob", max_tokens=100)
        await ask(client, user="bob", tenant="globex", max_tokens=100)


async def test_what_was_used_survives_a_restart_of_the_client(tmp_path: Path) -> None:
    options = {"quota_file": tmp_path / "quota.json", "wall": lambda: 5000.0}
    for _ in range(2):
        async with client_of(None, FIXED, telling(17, 25), **options) as (client, _):
            await ask(client)
    async with client_of(None, FIXED, well, **options) as (client, _):
        assert left(client) == 1000 - 84


async def test_an_answer_that_ends_after_its_client_was_closed_is_charged_too(tmp_path: Path) -> None:
    options = {"quota_file": tmp_path / "quota.json", "wall": lambda: 5000.0}
    script = [sse_head(), *(chunk(f"{n} ") for n in range(7)), FOREVER]
    async with client_of(None, FIXED, failing(*script), **options) as (client, _):
        answer = await client.chat.completions.create(messages=ASK, stream=True, max_tokens=100)
        for _ in range(7):
            await anext(answer)
        reserved = left(client)
        await client.close()
        with pytest.raises(errors.ClientClosed):
            await anext(answer)
        await answer.close()
        assert left(client) == reserved + 100 - 7


@pytest.mark.parametrize(("mode", "route"), [("refuse", "edge"), ("admit", "cloud")])
async def test_a_broken_quota_file_closes_or_opens_the_cloud_as_declared_and_never_the_device(
    smollm2: Model, tmp_path: Path, mode: str, route: str
) -> None:
    file = tmp_path / "quota.json"
    file.write_text("{torn")
    policy = f'{TO_CLOUD}[quota]\non_store_failure = "{mode}"\n'
    async with client_of(smollm2, policy, well, quota_file=file) as (client, _):
        answer = await ask(client)
    assert answer.hybrid is not None
    assert answer.hybrid.route == route
    assert answer.hybrid.rule == ("quota.on_store_failure" if mode == "refuse" else "complexity.hard_from")


async def test_a_store_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, asked = threading.Event(), 0

    class Hanging(MemoryStore):
        def transact(self, change):  # type: ignore[no-untyped-def]
            nonlocal asked
            asked += 1
            hanging.wait()
            return super().transact(change)

    policy = Policy.parse('[quota]\non_store_failure = "admit"').quota
    quotas = Quotas(policy, Hanging(), new_name=map(str, itertools.count()).__next__)
    meter = Meter(quotas, lambda: 0.0, on_disk=True, deadline_s=0.05)
    try:
        holds = [await meter.reserve(Account("ann"), Use(10)) for _ in range(3)]
        assert all(hold is not None and hold.source == "free" for hold in holds)
        assert (await meter.view(Account("ann"))).admits(10**9)
        assert asked == 1  # nobody else queues behind it
    finally:
        hanging.set()
        meter.close()


@pytest.mark.parametrize("leave", ["cancelled", "late"])
async def test_a_reservation_that_nobody_waits_for_any_more_is_given_back(leave: str) -> None:
    slow, begun = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        def transact(self, change):  # type: ignore[no-untyped-def]
            begun.set()
            slow.wait()
            return super().transact(change)

    policy = Policy.parse('[quota]\ncapacity = 100\nrefill_per_s = 0\non_store_failure = "refuse"').quota
    quotas = Quotas(policy, Slow(), new_name=map(str, itertools.count()).__next__)
    meter = Meter(quotas, lambda: 0.0, on_disk=True, deadline_s=0.05 if leave == "late" else 60.0)
    try:
        asked = asyncio.create_task(meter.reserve(Account("ann"), Use(60)))
        while not begun.is_set():
            await asyncio.sleep(0)
        if leave == "cancelled":
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
        else:
            assert await asked is None
    finally:
        slow.set()
        meter.close()
    await asyncio.to_thread(meter._worker.shutdown)  # type: ignore[union-attr]
    assert quotas.view(Account("ann"), 0.0).available == 100
