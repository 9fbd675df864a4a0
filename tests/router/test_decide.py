"""One request, one route, one reason; the same for the dry run and for serving, whatever the request holds."""

from dataclasses import replace

import pytest
from hybrid.router.plan import SpeculationFacts
from hybrid.router.policy.policy import Policy
from hybrid.router.quota import QuotaView
from hybrid.tests.support.deciding import (
    DRAFTED,
    DRAFTING,
    HARD,
    NO_DEVICE,
    OFFLINE,
    PRIVATE,
    PRIVATE_AND_HARD,
    SIMPLE,
    UNCERTAIN,
    run,
    way,
)


@pytest.mark.parametrize(
    ("prompt", "facts", "expected"),
    [
        (SIMPLE, {}, ("edge", "simple", "complexity.cascade_from")),
        (HARD, {}, ("cloud", "hard", "complexity.hard_from")),
        (UNCERTAIN, {}, ("cascade", "low_confidence", "complexity.hard_from")),
        (DRAFTED, {}, ("speculative", "drafted", "speculation.always")),
        (PRIVATE, {}, ("edge", "private", "privacy.local_only")),
        (HARD, {"quota": QuotaView(available=3, capacity=1000)}, ("edge", "quota_degraded", "quota.on_exhausted")),
        (PRIVATE_AND_HARD, {}, ("refuse", "private_too_hard", "privacy.too_hard_from")),
        (HARD, {"link": OFFLINE}, ("edge", "cloud_unreachable", "capability.cloud")),
        (SIMPLE, {"link": OFFLINE}, ("edge", "simple", "complexity.cascade_from")),
    ],
)
def test_each_way_through_the_router_is_reached_by_a_natural_prompt(prompt: str, facts: dict, expected: tuple[str, str, str]) -> None:
    assert way(prompt, **facts) == expected


def test_drafting_follows_the_plan_and_the_policy() -> None:
    fast = SpeculationFacts(rtt_s=0.01, draft_s=(0, 0.005, 0.01, 0.015, 0.02), verify_s=(0.03,) + (0.035,) * 4, acceptance=0.9)
    slow = replace(fast, rtt_s=0.5)
    auto, off = Policy.default(), Policy.parse('[speculation]\nmode = "off"')
    assert way(DRAFTED, policy=auto, speculation=fast) == ("speculative", "drafted", "speculation.auto")
    assert way(DRAFTED, policy=auto, speculation=slow)[:2] == ("cloud", "hard")
    assert way(DRAFTED, policy=auto, speculation=SpeculationFacts())[:2] == ("cloud", "hard")
    assert way(DRAFTED, policy=DRAFTING, speculation=slow)[:2] == ("speculative", "drafted")
    assert way(DRAFTED, policy=DRAFTING, speculation=None)[:2] == ("cloud", "hard")  # the two share no vocabulary, say
    assert way(DRAFTED, policy=off, speculation=fast)[:2] == ("cloud", "hard")
    plan = run(DRAFTED, policy=auto, speculation=fast).plan
    assert plan is not None and plan.draft_len == 4


def test_bands_follow_the_policy() -> None:
    all_edge = Policy.parse("[complexity]\ncascade_from = 1\nhard_from = 1")
    no_cascade = Policy.parse("[complexity]\ncascade_from = 0.5\nhard_from = 0.5")
    all_cloud = Policy.parse("[complexity]\ncascade_from = 0\nhard_from = 0")
    assert way(HARD, policy=all_edge)[:2] == ("edge", "simple")
    assert {way(prompt, policy=no_cascade)[0] for prompt in (SIMPLE, UNCERTAIN, DRAFTED, HARD)} == {"edge", "cloud"}
    assert way(SIMPLE, policy=all_cloud)[:2] == ("cloud", "hard")
    never_too_hard = Policy.parse("[privacy]\ntoo_hard_from = 1.0")
    assert way(PRIVATE_AND_HARD, policy=never_too_hard)[:2] == ("edge", "private")


def test_falling_back_is_deciding_again_with_the_facts_changed() -> None:
    assert way(DRAFTED)[0] == "speculative"
    assert way(DRAFTED, link=OFFLINE)[:2] == ("edge", "cloud_unreachable")
    assert way(SIMPLE, device=NO_DEVICE)[:2] == ("cloud", "edge_unavailable")
    assert way(PRIVATE, device=NO_DEVICE)[0] == "refuse"
