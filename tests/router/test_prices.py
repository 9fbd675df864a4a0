"""What the cloud costs, by the policy's prices."""

from __future__ import annotations

import pytest
from hybrid.router.costs import CostModel, priced
from hybrid.router.policy.policy import Policy
from hybrid.router.quota.quotas import full_view
from hybrid.router.request import RouteRequest
from hybrid.tests.support.deciding import DRAFTING, HARD, NO_DEVICE, SIMPLE, run, way

PRICES = """
[price]
models = { "big" = { input = 2.0, output = 10.0 }, "small" = { input = 0.5, output = 30.0 } }
"""
COUNTED = {"count_tokens": lambda request: 100}


def prices(text: str, model: str | None) -> tuple[float | None, float | None]:
    found = priced(CostModel(), Policy.parse(text).price, model)
    return found.price_in, found.price_out


def test_a_model_is_priced_by_its_name_or_by_the_star() -> None:
    assert prices(PRICES, "big") == (2e-6, 1e-5)
    assert prices(PRICES + 'per = "token"', "big") == (2.0, 10.0)
    assert prices(PRICES, "other") == prices(PRICES, None) == (None, None)
    star = '[price.models]\n"*" = { input = 1, output = 3 }\n'
    assert prices(star, None) == prices(star, "any") == (1e-6, 3e-6)


def test_a_model_without_a_price_is_unknown_or_the_dearest_and_never_free() -> None:
    assert prices(PRICES + 'unpriced = "dearest"', "other") == (2e-6, 3e-5)
    assert prices('[price]\nunpriced = "dearest"', "other") == (None, None)  # nothing to go by


def test_what_a_program_measured_itself_goes_before_the_policy() -> None:
    found = priced(CostModel(price_in=7.0), Policy.parse(PRICES).price, "big")
    assert (found.price_in, found.price_out) == (7.0, 1e-5)


def test_the_cost_stands_in_the_decision_and_in_what_is_expected_also_where_no_time_is_known() -> None:
    policy = Policy.parse(PRICES)
    request = RouteRequest.of(HARD, max_tokens=50, model="big")
    decision = run(request, policy=policy, **COUNTED)
    assert decision.cost == pytest.approx(100 * 2e-6 + 50 * 1e-5)
    cloud = decision.expected["cloud"]
    assert cloud is not None
    assert (cloud.seconds, cloud.tokens, cloud.cost) == (None, 150, decision.cost)
    assert run(RouteRequest.of(SIMPLE, model="big"), policy=policy).cost is None  # the cloud has no part in it


def test_a_rule_may_look_at_prices() -> None:
    rule = '[[rule]]\nname = "dear"\nwhen = "price_out > 20.0"\nroute = "edge"\n'
    policy = Policy.parse(PRICES + rule)
    assert way(RouteRequest.of(HARD, model="small"), policy=policy)[2] == "rule.dear"
    assert way(RouteRequest.of(HARD, model="big"), policy=policy)[0] == "cloud"


def test_a_budget_keeps_an_unpriced_model_out_and_no_other_one() -> None:
    policy = Policy.parse(PRICES + "[quota]\nbudget = 0.01\n")
    facts = {"policy": policy, "quota": full_view(policy.quota), **COUNTED}
    assert way(RouteRequest.of(HARD, max_tokens=50, model="big"), **facts)[:2] == ("cloud", "hard")
    assert way(RouteRequest.of(HARD, max_tokens=50, model="other"), **facts)[1:] == ("quota_degraded", "quota.budget")
    dear = run(RouteRequest.of(HARD, max_tokens=900, model="small"), device=NO_DEVICE, **facts)
    assert (dear.route, dear.reason, dear.quota_rule) == ("refuse", "over_quota", "quota.budget")
    assert "never holds" in dear.why
    assert DRAFTING.quota.budget == "unlimited"
