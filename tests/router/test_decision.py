"""What a decision says, and what it keeps to itself."""

import json
import logging

import pytest
from hybrid.router.costs import CostModel, Expected
from hybrid.router.plan import SpeculationFacts
from hybrid.router.policy.policy import Policy
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.errors import InvalidRequest
from hybrid.shared_protocol.runtime import LinkState
from hybrid.tests.support.deciding import DRAFTING, HARD, PRIVATE, SIMPLE, run


def test_a_decision_is_printed_with_six_keys_and_no_word_of_the_request() -> None:
    decision = run(PRIVATE)
    shown = json.loads(decision.to_json())
    assert list(shown) == ["route", "reason", "rule", "scores", "expected", "provenance"]
    assert shown["scores"] == {"complexity": decision.scores.complexity, "confidence": None, "privacy": "local_only", "gate": None}
    assert shown["expected"] == {"edge": None, "cloud": None, "cascade": None, "speculative": None}
    assert shown["provenance"] == {"policy_hash": DRAFTING.hash, "tokens": "estimated", "calibration_id": None}
    versioned = run(PRIVATE, policy=Policy.parse('version = "3"'))
    assert json.loads(versioned.to_json())["provenance"]["policy_version"] == "3"


def test_no_log_error_repr_or_json_holds_private_text(caplog: pytest.LogCaptureFixture) -> None:
    """Like row H69: a prompt with mail, phone and card leaves none of them anywhere."""
    secrets = ("anna.smith@example.com", "415-555-0123", "4111 1111 1111 1111", "5eCr3t")
    prompt = f"{secrets[0]} {secrets[1]} {secrets[2]} password={secrets[3]}"
    with caplog.at_level(logging.DEBUG):
        decision = run(prompt)
        shown = f"{decision!r} {decision.to_json().decode()} {decision.why} {RouteRequest.of(prompt)!r}"
        for bad in (
            [{"role": prompt, "content": "x"}],
            [{"role": "user", "content": prompt + "\ud800"}],
            [{"role": "user", prompt: prompt}],
        ):
            with pytest.raises(InvalidRequest) as caught:
                RouteRequest.of(bad)
            shown += f"{caught.value} {caught.value!r} {caught.value.hint} {caught.value.__cause__!r} {caught.value.__context__!r}"
    for secret in secrets:
        assert secret not in shown + caplog.text


def test_tokens_are_counted_where_a_tokenizer_is_given_and_else_estimated() -> None:
    assert run(SIMPLE, count_tokens=lambda request: 9).provenance.tokens == "exact"
    assert run(SIMPLE, count_tokens=lambda request: 9).prompt_tokens == 9
    text = "é" * 90  # 180 bytes: 50 tokens, and 6 for the message
    assert run(text).prompt_tokens == 56

    def broken(request: RouteRequest) -> int:
        raise ValueError("no template")

    assert run(SIMPLE, count_tokens=broken).provenance.tokens == "estimated"
    assert run(SIMPLE, count_tokens=lambda request: -1).provenance.tokens == "estimated"


def test_expected_costs_are_worked_out_where_all_numbers_are_known() -> None:
    costs = CostModel(0.01, 0.1, 0.001, 0.02, price_in=1e-6, price_out=2e-6)
    link = LinkState(reachable=True, rtt_s=0.05)
    facts = {"costs": costs, "link": link, "count_tokens": lambda request: 100}
    expected = run(RouteRequest.of(HARD, max_tokens=10), **facts).expected
    assert expected["edge"] == Expected(pytest.approx(2.0), 0, 0.0)
    assert expected["cloud"] == Expected(pytest.approx(0.05 + 0.1 + 0.2), 110, pytest.approx(1.2e-4))
    assert expected["cascade"] == Expected(pytest.approx(2.35), 110, pytest.approx(1.2e-4))
    assert expected["speculative"] is None  # the link is not measured
    measured = SpeculationFacts(rtt_s=0.05, draft_s=(0.0, 0.01), verify_s=(0.02, 0.02), acceptance=1.0)
    expected = run(RouteRequest.of(HARD, max_tokens=10), **facts, speculation=measured).expected
    assert expected["speculative"] == Expected(pytest.approx(0.05 + 0.1 + 10 * (0.01 + 0.05 + 0.02) / 2), 110, pytest.approx(1.2e-4))
    assert run(RouteRequest.of(HARD, max_tokens=10), **{**facts, "costs": CostModel(0.01, 0.1)}).expected["cloud"] is None
    private = run(RouteRequest.of(PRIVATE, max_tokens=10), **facts).expected
    assert private["edge"] is not None and private["cloud"] is private["cascade"] is private["speculative"] is None
