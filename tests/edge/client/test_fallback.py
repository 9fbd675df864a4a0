"""Several targets: who is asked when one fails, how often, and what is said when nobody is left."""

from __future__ import annotations

import asyncio

import pytest
from hybrid.edge.client import AsyncHybridClient, CloudTarget
from hybrid.edge.device_state import SimulatedDevice
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import (
    ASK,
    PRIVATE,
    TO_CLOUD,
    TO_EDGE,
    ask,
    asked,
    client_of,
    client_of_several,
    failing,
    stream,
    text_of,
    told,
    tried,
    well,
)
from hybrid.tests.support.scripted_server import CLOSE, Received, Script, response, scripted_server


def busy(seconds: float | None = 47) -> bytes:
    header = "" if seconds is None else f"retry-after: {seconds}\r\n"
    return response(429, {"error": {"message": "wait", "type": "t", "param": None, "code": "quota_exceeded"}}, header)


GONE = response(503, b"")


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_busy_primary_is_not_waited_for_where_a_fallback_is_healthy(streamed: bool) -> None:
    """Row G62: 429 with Retry-After 47. Waiting for it would run into this timeout."""
    async with client_of_several(None, TO_CLOUD, {"a": failing(busy()), "b": well}) as (client, servers), asyncio.timeout(40):
        answer = await stream(client) if streamed else await ask(client)
    assert text_of(answer) in ("Hi there", "from afar")
    assert tried(answer) == [("a", "quota_exceeded"), ("b", "answered")]
    assert (asked(servers["a"]), asked(servers["b"])) == (1, 1)


@pytest.mark.parametrize(("says_s", "rests_s"), [(47, 47), (3600, 60), (None, 10)])
async def test_a_busy_target_rests_for_as_long_as_it_says_but_not_longer_than_the_policy_believes(says_s: int | None, rests_s: int) -> None:
    now = 0.0
    policy = TO_CLOUD + "[fallback]\nmax_cooldown_s = 60\n"
    async with client_of_several(None, policy, {"a": failing(busy(says_s)), "b": well}, clock=lambda: now) as (client, servers):
        await ask(client)
        now = rests_s - 0.5
        assert tried(await ask(client)) == [("b", "answered")]
        assert asked(servers["a"]) == 1
        now = rests_s + 0.5
        assert tried(await ask(client)) == [("a", "quota_exceeded"), ("b", "answered")]
        assert asked(servers["a"]) == 2


async def test_a_failing_target_cools_down_and_is_asked_again_after_it() -> None:
    now = 0.0
    broken = True

    def answer(request: Received) -> Script:
        return [GONE] if broken and request.method == "POST" else well(request)

    async with client_of_several(None, TO_CLOUD, {"a": answer, "b": well}, clock=lambda: now) as (client, servers):
        assert tried(await ask(client)) == [("a", "unavailable"), ("b", "answered")]
        broken = False
        now = 9.0
        assert tried(await ask(client)) == [("b", "answered")]
        now = 11.0
        assert tried(await ask(client)) == [("a", "answered")]
        assert asked(servers["a"]) == 2


async def test_when_all_fail_each_was_asked_once_and_the_error_lists_them_all() -> None:
    """Row G58."""
    answers = {"a": failing(GONE), "b": failing(CLOSE), "c": failing(response(500, b""))}
    async with client_of_several(None, TO_CLOUD, answers) as (client, servers):
        with pytest.raises(errors.CloudUnreachable, match=r"a: .*b: .*c: ") as gone:
            await ask(client)
        assert gone.value.status == 503
        assert [asked(server) for server in servers.values()] == [1, 1, 1]
        with pytest.raises(errors.CloudUnreachable, match=r"a: not asked again yet.*c: not asked again yet"):
            await ask(client)
        assert [asked(server) for server in servers.values()] == [1, 1, 1]


async def test_no_target_is_asked_twice_for_one_request_though_none_rests() -> None:
    """Row G58: neither a target that failed, nor one that refuses us, comes round again while the budget lasts."""
    refusing = response(401, {"error": {"message": "no", "type": "t", "param": None, "code": "invalid_api_key"}})
    answers = {"a": failing(GONE), "b": failing(refusing), "c": failing(response(500, b""))}
    policy = TO_CLOUD + "[fallback]\ncooldown_s = 0\nattempts = 100\n"
    async with client_of_several(None, policy, answers, clock=lambda: 0.0) as (client, servers):
        for count in (1, 2):
            with pytest.raises(errors.HybridError, match=r"a: .*b: .*c: "):
                await ask(client)
            assert [asked(server) for server in servers.values()] == [count] * 3


@pytest.mark.parametrize("budget", [1, 2, 3])
async def test_one_budget_of_attempts_covers_all_targets_and_retries(smollm2: Model, budget: int) -> None:
    policy = f"{TO_CLOUD}[fallback]\nattempts = {budget}\nretries = 5\ncooldown_s = 0\n"
    async with client_of_several(smollm2, policy, {"a": failing(GONE), "b": failing(GONE)}) as (client, servers):
        with pytest.raises(errors.CloudUnreachable, match=rf"{budget} attempts have failed"):
            await ask(client)
        assert sum(asked(server) for server in servers.values()) == budget


async def test_a_target_is_tried_again_only_as_often_as_the_policy_says_and_after_all_others() -> None:
    policy = f"{TO_CLOUD}[fallback]\nretries = 1\nattempts = 100\n"
    order: list[str] = []

    def noting(name: str, *script: bytes | object):  # type: ignore[no-untyped-def]
        def answer(request: Received) -> Script:
            if request.method == "POST":
                order.append(name)
            return failing(*script)(request)

        return answer

    answers = {"a": noting("a", GONE), "b": noting("b", busy()), "c": noting("c", GONE)}
    async with client_of_several(None, policy, answers) as (client, _):
        with pytest.raises(errors.QuotaExceeded):
            await ask(client)
    assert order == ["a", "b", "c", "a", "c"]  # a busy one is not asked again


async def test_a_second_attempt_that_succeeds_is_an_answer() -> None:
    calls = 0

    def once(request: Received) -> Script:
        nonlocal calls
        calls += request.method == "POST"
        return [GONE] if calls == 1 and request.method == "POST" else well(request)

    async with client_of(None, TO_CLOUD + "[fallback]\nretries = 1\n", once) as (client, _):
        assert tried(await ask(client)) == [("cloud", "unavailable"), ("cloud", "answered")]


@pytest.mark.parametrize(
    ("scripts", "status", "retry_after"),
    [
        ({"a": busy(47), "b": busy(12)}, 429, 12),
        ({"a": busy(47), "b": GONE}, 429, 47),  # somebody is there
        ({"a": busy(None), "b": busy(None)}, 429, None),
        ({"a": busy(float("inf")), "b": busy(float("nan"))}, 429, None),
        ({"a": busy(-5), "b": busy(float("inf"))}, 429, 0),
        ({"a": GONE, "b": CLOSE}, 503, None),
        ({"a": response(503, b"", "retry-after: 9\r\n"), "b": CLOSE}, 503, 9),
    ],
)
async def test_nobody_there_is_503_and_everybody_busy_is_429_and_the_shortest_wait_is_told(
    scripts: dict[str, bytes | object], status: int, retry_after: float | None
) -> None:
    answers = {name: failing(script) for name, script in scripts.items()}
    async with client_of_several(None, TO_CLOUD, answers, clock=lambda: 0.0) as (client, _):
        with pytest.raises(errors.HybridError) as refused:
            await ask(client)
        assert (refused.value.status, refused.value.retry_after_s) == (status, retry_after)
        assert refused.value.code == ("quota_exceeded" if status == 429 else "cloud_unreachable")
        if status == 429:  # and it stays so while they rest, without a look at the network
            with pytest.raises(errors.QuotaExceeded):
                await ask(client)


async def test_a_wrong_key_at_one_target_leaves_the_others_but_a_single_target_says_so() -> None:
    wrong = response(401, {"error": {"message": "no", "type": "t", "param": None, "code": "invalid_api_key"}})
    async with client_of_several(None, TO_CLOUD, {"a": failing(wrong), "b": well}) as (client, _):
        assert tried(await ask(client)) == [("a", "invalid_api_key"), ("b", "answered")]
    async with client_of(None, TO_CLOUD, failing(wrong)) as (client, _):
        with pytest.raises(errors.AuthenticationError):
            await ask(client)


async def test_each_target_gets_its_own_key_and_model_and_no_other_s() -> None:
    async with scripted_server(failing(GONE)) as first, scripted_server(well) as second:
        targets = [CloudTarget(first.url, "key-of-a", "model-a"), CloudTarget(second.url, "key-of-b", "model-b")]
        policy = Policy.parse(TO_CLOUD)
        async with AsyncHybridClient(None, targets, policy=policy, device_state=SimulatedDevice()) as client:
            answer = await ask(client)
            named = await ask(client, model="mine")
    for server, key, model in ((first, "key-of-a", "model-a"), (second, "key-of-b", "model-b")):
        assert {request.headers["authorization"] for request in server.requests} == {f"bearer {key}"}
        assert next(r for r in server.requests if r.method == "POST").json()["model"] == model
    assert [r.json()["model"] for r in second.requests if r.method == "POST"] == ["model-b", "mine"]
    hosts = [server.url.removeprefix("http://") for server in (first, second)]
    assert tried(answer) == [(hosts[0], "unavailable"), (hosts[1], "answered")]
    assert "key-of" not in repr(targets) + str(answer) + str(named)


async def test_a_target_whose_context_is_too_small_leaves_the_request_to_a_larger_one() -> None:
    def with_context(tokens: int):  # type: ignore[no-untyped-def]
        def answer(request: Received) -> Script:
            if request.path == "/v1/models":
                model = {"id": "big", "created": 1, "owned_by": "x", "max_model_len": tokens}
                return [response(200, {"object": "list", "data": [model]})]
            return well(request)

        return answer

    answers = {"small": with_context(20), "large": with_context(4000)}
    async with client_of_several(None, TO_CLOUD, answers) as (client, servers):
        assert tried(await ask(client, max_tokens=60)) == [("large", "answered")]
        assert asked(servers["small"]) == 0
        with pytest.raises(errors.ContextOverflow, match="the limit is 4000"):
            await ask(client, max_tokens=9000)


async def test_the_device_is_the_last_resort_and_the_answer_says_so(smollm2: Model) -> None:
    async with client_of_several(smollm2, TO_CLOUD, {"a": failing(GONE), "b": failing(busy())}) as (client, _):
        answer = await ask(client)
    assert tried(answer) == [("a", "unavailable"), ("b", "quota_exceeded"), ("edge", "answered")]
    assert told(answer) == ("edge", "quota_degraded", [("edge", 6)])


async def test_any_error_of_the_device_in_the_middle_of_a_whole_answer_falls_back_unless_it_is_private(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hybrid.edge.held_tokens import HeldTokens

    extend, calls = HeldTokens.extend, 0

    def breaking(self: HeldTokens, *args: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise ZeroDivisionError
        return extend(self, *args, **options)  # type: ignore[arg-type]

    async with client_of(smollm2, TO_EDGE, well) as (client, server):
        await client.load()
        monkeypatch.setattr(HeldTokens, "extend", breaking)
        answer = await ask(client)
        assert (text_of(answer), tried(answer)) == ("from afar", [("edge", "engine_failed"), ("cloud", "answered")])
        assert told(answer) == ("cloud", "edge_unavailable", [("cloud", 3)])
        before = asked(server)
        with pytest.raises(errors.RouteRefused) as refused:
            await ask(client, PRIVATE)
        assert refused.value.code == "edge_unavailable"
        assert asked(server) == before


async def test_one_address_is_one_target_and_none_is_none() -> None:
    with pytest.raises(errors.ConfigError):
        AsyncHybridClient(None, [])
    async with scripted_server(well) as server, AsyncHybridClient(None, server.url, policy=Policy.parse(TO_CLOUD)) as client:
        assert tried(await ask(client, ASK)) == [("cloud", "answered")]
