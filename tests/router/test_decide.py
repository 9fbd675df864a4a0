"""One prompt, one route, one reason."""

import pytest
from hybrid.router.decide import decide
from hybrid.router.policy import Policy
from hybrid.router.quota import QuotaView
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.runtime import DeviceState, LinkState

ONLINE = LinkState(reachable=True)


def route(prompt: object, **facts: object) -> tuple[str, str]:
    decision = decide(RouteRequest.of(prompt), RouteContext(**{"link": ONLINE, **facts}))
    assert (decision.shareable is not None) == (decision.route in ("cloud", "cascade", "speculative"))
    return decision.route, decision.reason


def test_a_simple_question_stays_on_the_device() -> None:
    assert route("What is the capital of France?") == ("edge", "simple")


def test_a_private_prompt_stays_on_the_device() -> None:
    assert route("Write to bob@example.com that I am late.") == ("edge", "private")


def test_a_conversation_that_was_private_stays_private() -> None:
    assert route("Thanks, and now the next one.", privacy_floor="local_only") == ("edge", "private")


def test_a_secret_is_blocked() -> None:
    assert route("What does AKIAIOSFODNN7EXAMPLE open?") == ("refuse", "blocked")


def test_without_a_cloud_the_device_answers() -> None:
    assert route("Prove Fermat's last theorem.", link=LinkState(reachable=False)) == ("edge", "cloud_unreachable")


def test_without_a_device_the_cloud_answers() -> None:
    assert route("Hello", device=DeviceState(edge_available=False)) == ("cloud", "edge_unavailable")


@pytest.mark.parametrize(("setting", "expected"), [("degrade", ("edge", "quota_degraded")), ("refuse", ("refuse", "over_quota"))])
def test_an_empty_bucket_degrades_or_refuses_as_the_policy_says(setting: str, expected: tuple[str, str]) -> None:
    policy = Policy.parse(f'[quota]\non_exhausted = "{setting}"')
    assert route("Hello", policy=policy, quota=QuotaView(available=10, capacity=100)) == expected
