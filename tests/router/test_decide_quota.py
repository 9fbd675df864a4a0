"""What the cloud's quota leaves of a decision."""

import pytest
from hybrid.router.policy.policy import Policy
from hybrid.router.quota import QuotaView
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.deciding import DRAFTED, DRAFTING, HARD, NO_DEVICE, SIMPLE, UNCERTAIN, run, way


@pytest.mark.parametrize("prompt", [UNCERTAIN, DRAFTED, HARD])
def test_an_empty_bucket_degrades_or_refuses_as_the_policy_says(prompt: str) -> None:
    empty = {"quota": QuotaView(available=10, capacity=10_000, refill_per_s=1)}
    assert way(prompt, **empty)[:2] == ("edge", "quota_degraded")
    refusing = Policy.parse('[quota]\non_exhausted = "refuse"')
    assert way(prompt, policy=refusing, **empty)[:2] == ("refuse", "over_quota")
    assert way(prompt, device=NO_DEVICE, **empty)[:2] == ("refuse", "over_quota")


def test_a_request_that_needs_no_cloud_asks_no_quota() -> None:
    refusing = Policy.parse('[quota]\non_exhausted = "refuse"')
    assert way(SIMPLE, policy=refusing, quota=QuotaView(0, 0))[:2] == ("edge", "simple")


def test_prompt_and_answer_are_reserved_together() -> None:
    counted = {"count_tokens": lambda request: 30}
    assert run(RouteRequest.of(HARD, max_tokens=70), quota=QuotaView(100, 100), **counted).cloud_tokens == 100
    assert run(RouteRequest.of(HARD, max_tokens=71), quota=QuotaView(100, 100), **counted).reason == "quota_degraded"
    assumed = DRAFTING.quota.assumed_output
    two = RouteRequest.of(HARD, sampling=SamplingParams(max_tokens=70, n=2))
    assert run(two, **counted).cloud_tokens == 30 + 2 * 70
    assert run(HARD, **counted).cloud_tokens == 30 + assumed


def test_a_request_larger_than_the_bucket_is_told_so() -> None:
    assert "never holds" in run(HARD, quota=QuotaView(available=5, capacity=5, refill_per_s=1)).why
    assert "enough in" in run(HARD, quota=QuotaView(available=5, capacity=5_000, refill_per_s=1)).why


def test_a_user_whose_drafts_were_rejected_too_often_is_answered_by_the_cloud_alone_and_told_so() -> None:
    empty = QuotaView(available=3, capacity=100, refill_per_s=1, level="rejected")
    decision = run(DRAFTED, rejected=empty)
    assert (decision.route, decision.reason) == ("cloud", "hard")
    assert decision.plan is not None and "rejected" in decision.plan.why
    assert way(DRAFTED)[0] == "speculative"


def test_a_refusal_says_which_level_lacks_and_when_to_come_back() -> None:
    above = (QuotaView(available=10, capacity=1000, refill_per_s=10, level="tenant"),)
    refusing = Policy.parse('[quota]\non_exhausted = "refuse"')
    view = QuotaView(available=500, capacity=500, refill_per_s=1, above=above)
    request = RouteRequest.of(HARD, max_tokens=70)
    counted = {"count_tokens": lambda request: 30, "policy": refusing}
    later = run(request, quota=view, **counted)
    assert (later.route, later.reason, later.quota_rule, later.retry_after_s) == ("refuse", "over_quota", "quota.on_exhausted", 9.0)
    assert "for this tenant" in later.why
    never = run(RouteRequest.of(HARD, max_tokens=600), quota=view, **counted)
    assert (never.quota_rule, never.retry_after_s) == ("quota.capacity", None)
