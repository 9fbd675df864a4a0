"""What becomes of a device's answer once it has been judged."""

import math

import pytest
from hybrid.router.confidence.gate import Gate
from hybrid.router.confidence.judgement import Judgement, judge, stopped
from hybrid.router.decide import decide, resolve_cascade
from hybrid.router.decision import Decision
from hybrid.router.policy import Policy
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.runtime import LinkState

from .confidence.test_gate import GATE

UNCERTAIN = "Write a Python function that reverses a string."
POLICY = Policy.default().confidence


def decided(prompt: str = UNCERTAIN) -> Decision:
    return decide(RouteRequest.of(prompt), RouteContext(link=LinkState(reachable=True)))


def test_a_confident_answer_of_the_device_is_kept_and_the_way_to_the_cloud_is_gone() -> None:
    decision = decided()
    assert (decision.route, decision.reason, decision.scores.confidence, decision.scores.gate) == ("cascade", "low_confidence", None, None)
    kept = resolve_cascade(decision, judge(0.5, POLICY, None, "code"))
    assert (kept.route, kept.reason, kept.rule, kept.scores.confidence) == ("edge", "simple", "confidence.threshold", 0.5)
    assert (kept.shareable, kept.cloud_tokens, kept.scores.gate) == (None, 0, "passed")


@pytest.mark.parametrize("value", [0.499, 0.0, None, math.nan])
def test_a_doubtful_or_unknown_answer_goes_to_the_cloud(value: float | None) -> None:
    decision, known = decided(), value is not None and math.isfinite(value)
    handed_over = resolve_cascade(decision, judge(value, POLICY, None, "code"))
    assert (handed_over.route, handed_over.reason) == ("cascade", "low_confidence")
    assert handed_over.scores.gate == ("below_threshold" if known else "unavailable")
    assert handed_over.shareable is decision.shareable is not None
    assert handed_over.scores.confidence == (value if known else None)


def test_one_that_was_given_up_goes_to_the_cloud_and_says_so() -> None:
    handed_over = resolve_cascade(decided(), stopped(17, None, "code"))
    assert (handed_over.route, handed_over.rule, handed_over.scores.gate) == ("cascade", "confidence.stop_below", "stopped_early")
    assert "after 17 tokens" in handed_over.why


@pytest.mark.parametrize(("gate", "calibration"), [(None, None), (GATE.sealed(), GATE.sealed().calibration_id), ("does not fit", None)])
def test_a_decision_names_the_calibration_that_it_rests_on(gate: Gate | str | None, calibration: str | None) -> None:
    assert resolve_cascade(decided(), judge(0.9, POLICY, gate, "code")).provenance.calibration_id == calibration


def test_confidence_sends_nothing_of_another_route_to_the_cloud() -> None:
    judgement = Judgement("below_threshold", 0.0, "confidence.threshold", "")
    resolved = resolve_cascade(decided("mail bob@example.com"), judgement)
    assert (resolved.route, resolved.reason, resolved.shareable) == ("edge", "private", None)
