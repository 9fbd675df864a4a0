"""What becomes of a device's answer once it has been judged."""

import math

import pytest
from hybrid.router.cascade import add_draft
from hybrid.router.confidence.gate import Gate
from hybrid.router.confidence.judgement import Judgement, judge, stopped
from hybrid.router.decide import decide, resolve_cascade
from hybrid.router.decision import Decision
from hybrid.router.policy.policy import Policy
from hybrid.router.quota import QuotaView
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


DRAFTED = Policy.parse("[cascade]\ndraft_as_context = true\n")


def sent(decision: Decision) -> list[tuple[str, str | None]]:
    assert decision.shareable is not None
    return [(message.role, message.content) for message in decision.shareable.value.messages]


def test_a_draft_goes_along_in_the_user_s_last_message() -> None:
    before = decided()
    after, state = add_draft(before, "def reverse(s): ...", 7, DRAFTED, None)
    assert state == "sent"
    ((role, content),) = sent(after)
    assert role == "user" and content is not None
    assert content.startswith(f"{UNCERTAIN}\n\n") and content.endswith("Draft:\ndef reverse(s): ...")
    assert after.prompt_tokens > before.prompt_tokens + 7
    assert sent(before) == [("user", UNCERTAIN)]


def test_after_a_tool_s_result_it_is_a_message_of_its_own() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turns = [
        {"role": "user", "content": UNCERTAIN},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ]
    decision = decide(RouteRequest.of(turns), RouteContext(link=LinkState(reachable=True)))
    after, state = add_draft(decision, "It is 42.", 5, DRAFTED, None)
    assert state == "sent"
    assert [role for role, _ in sent(after)] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize("draft", ["Write to bob@example.com.", "The card is 4111 1111 1111 1111.", "Ask about your chemotherapy."])
def test_a_draft_in_which_something_private_is_found_stays_here_and_the_question_goes_without_it(draft: str) -> None:
    before = decided()
    after, state = add_draft(before, draft, 9, DRAFTED, None)
    assert (after, state) == (before, "private")


def test_one_that_fits_no_more_is_left_out() -> None:
    before = decided()
    assert add_draft(before, "short", 100, DRAFTED, before.prompt_tokens + 100) == (before, "too_long")
    assert add_draft(before, "short", 100, DRAFTED, before.prompt_tokens + 500)[1] == "sent"


def test_a_draft_s_tokens_are_reserved_before_it_is_known() -> None:
    request, link = RouteRequest.of(UNCERTAIN, max_tokens=100), LinkState(reachable=True)
    plain, drafted = (decide(request, RouteContext(policy=policy, link=link)) for policy in (Policy.default(), DRAFTED))
    assert (plain.route, drafted.route) == ("cascade", "cascade")
    assert drafted.cloud_tokens - plain.cloud_tokens >= 100
    short = QuotaView(plain.cloud_tokens, 100_000)
    assert decide(request, RouteContext(link=link, quota=short)).route == "cascade"
    assert decide(request, RouteContext(policy=DRAFTED, link=link, quota=short)).reason == "quota_degraded"
