"""Who can answer at all."""

import pytest
from hybrid.router.policy.policy import Policy
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.runtime import DeviceState, LinkState
from hybrid.tests.support.deciding import DRAFTED, NO_DEVICE, OFFLINE, PRIVATE, SIMPLE, UNCERTAIN, way


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"device": NO_DEVICE}, ("cloud", "edge_unavailable", "capability.edge")),
        ({"device": DeviceState(edge_context=20)}, ("cloud", "too_long", "capability.edge_context")),
        ({"link": LinkState(reachable=True, cloud_context=20)}, ("edge", "too_long", "capability.cloud_context")),
        ({"device": NO_DEVICE, "link": OFFLINE}, ("refuse", "cloud_unreachable", "capability.cloud")),
        (
            {"device": DeviceState(edge_context=20), "link": LinkState(True, cloud_context=20)},
            ("refuse", "too_long", "capability.cloud_context"),
        ),
    ],
)
def test_who_can_answer_is_settled_before_how_hard_it_is(facts: dict, expected: tuple[str, str, str]) -> None:
    for prompt in (UNCERTAIN, DRAFTED):
        assert way(RouteRequest.of(prompt, max_tokens=30), **facts) == expected


def test_prompt_and_answer_together_must_fit() -> None:
    device = DeviceState(edge_context=100)
    counted = {"count_tokens": lambda request: 60, "device": device}
    assert way(RouteRequest.of("hi", max_tokens=40), **counted)[0] == "edge"
    assert way(RouteRequest.of("hi", max_tokens=41), **counted)[:2] == ("cloud", "too_long")


def test_the_policy_may_spare_the_device() -> None:
    policy = Policy.parse("[edge]\nmin_battery = 0.2\nmin_thermal_headroom = 0.1\nmax_prompt_tokens = 50")
    assert way(SIMPLE, policy=policy, device=DeviceState(battery=0.1)) == ("cloud", "edge_unavailable", "edge.min_battery")
    assert way(SIMPLE, policy=policy, device=DeviceState(thermal_headroom=0.0)) == (
        "cloud",
        "edge_unavailable",
        "edge.min_thermal_headroom",
    )
    assert way("word " * 60, policy=policy) == ("cloud", "too_long", "edge.max_prompt_tokens")
    assert way(SIMPLE, policy=policy, device=DeviceState())[1] == "simple"  # not known is not bad news
    assert way(PRIVATE, policy=policy, device=DeviceState(battery=0.1))[1] == "private"
    assert way(SIMPLE, policy=policy, device=DeviceState(battery=0.1), link=OFFLINE)[1] == "cloud_unreachable"
