"""What the cloud's quota leaves of a decision."""

import pytest
from hybrid.router.policy import Policy
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
