"""Not good enough, not known, and not asked for are three different things."""

import math
from typing import Any

import msgspec
import pytest
from hybrid.router.calibration import Logistic
from hybrid.router.confidence.gate import Gate
from hybrid.router.confidence.judgement import judge, out_of_reach
from hybrid.router.policy.tables import ConfidencePolicy
from hypothesis import given
from hypothesis import strategies as st

from .test_gate import GATE as BARE
from .test_gate import POLICY

GATE = BARE.sealed()


def policy(**changes: Any) -> ConfidencePolicy:
    return msgspec.structs.replace(POLICY, **{"threshold": 0.5, **changes})


def test_without_a_gate_the_raw_signal_is_held_to_the_threshold() -> None:
    for value, state in ((0.5, "passed"), (0.4999, "below_threshold")):
        found = judge(value, policy(), None, "text")
        assert (found.state, found.confidence, found.rule, found.calibration_id) == (state, value, "confidence.threshold", None)


def test_with_a_gate_the_threshold_is_about_the_probability_of_being_right() -> None:
    # text: 0.5 -> 0.5 on the line from (0.2, 0.1) to (0.8, 0.9); code: sigmoid(4 * 0.5 - 2) = 0.5
    found = judge(0.65, policy(threshold=0.7), GATE, "text")
    assert (found.state, found.confidence, found.calibration_id) == ("passed", pytest.approx(0.7), GATE.calibration_id)
    assert judge(0.65, policy(threshold=0.71), GATE, "text").state == "below_threshold"
    assert judge(0.65, policy(threshold=0.7), GATE, "code").confidence == pytest.approx(1 / (1 + math.exp(-0.6)))


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
@pytest.mark.parametrize("gate", [None, GATE])
def test_no_signal_is_unavailable(value: float | None, gate: Gate | None) -> None:
    found = judge(value, policy(), gate, "text")
    assert (found.state, found.confidence, found.rule) == ("unavailable", None, "confidence.signal")


def test_a_gate_that_does_not_fit_is_unavailable_however_sure_the_model_was() -> None:
    found = judge(1.0, policy(threshold=0.0), "calibrated for another model", "text")
    assert (found.state, found.confidence, found.rule) == ("unavailable", None, "confidence.gate")
    assert "calibrated for another model" in found.why


def test_a_kind_of_task_that_was_not_calibrated_is_unavailable_unless_any_was() -> None:
    only_code = msgspec.structs.replace(GATE, groups={"code": GATE.groups["code"]}).sealed()
    assert judge(0.9, policy(), only_code, "text").state == "unavailable"
    with_any = msgspec.structs.replace(GATE, groups={"any": GATE.groups["text"]}).sealed()
    assert judge(0.9, policy(), with_any, "code").state == "passed"


def test_a_policy_without_a_signal_skips_and_keeps() -> None:
    for value, gate in ((0.1, None), (None, "does not fit")):
        found = judge(value, policy(signal="none"), gate, "text")
        assert (found.state, found.keeps, found.rule) == ("skipped", True, "confidence.signal")


def test_a_promised_error_rate_decides_by_its_own_threshold() -> None:
    asked = policy(error_rate=0.3, threshold=1.0)
    found = judge(0.6, asked, GATE, "code")
    assert (found.state, found.rule) == ("passed", "confidence.error_rate")
    assert found.confidence == pytest.approx(1 / (1 + math.exp(-0.4)))  # what is reported is the probability, not the signal
    assert judge(0.5999, asked, GATE, "code").state == "below_threshold"


def test_a_promise_that_was_not_made_is_unavailable() -> None:
    for asked, group in ((0.29, "code"), (0.3, "text")):
        found = judge(1.0, policy(error_rate=asked), GATE, group)
        assert (found.state, found.rule) == ("unavailable", "confidence.error_rate")


@given(st.one_of(st.none(), st.floats()), st.sampled_from([None, GATE, "no"]), st.sampled_from(["code", "text"]), st.floats(0, 1))
def test_judging_never_raises_and_keeps_only_what_passed(value: float | None, gate: Any, group: Any, threshold: float) -> None:
    found = judge(value, policy(threshold=threshold), gate, group)
    assert found.keeps == (found.state == "passed")
    assert found.confidence is None or 0 <= found.confidence <= 1 or gate is None


def test_what_cannot_pass_any_more_is_given_up_with_the_rule_that_it_fails() -> None:
    for gate, asked, rule in (
        (None, policy(threshold=0.7), "confidence.threshold"),
        (GATE, policy(threshold=0.71), "confidence.threshold"),
        (GATE, policy(error_rate=0.3), "confidence.error_rate"),
    ):
        found = out_of_reach(0.55, 9, asked, gate, "code")
        assert found is not None
        assert (found.state, found.confidence, found.rule) == ("stopped_early", None, rule)


def test_what_may_pass_yet_is_not() -> None:
    assert out_of_reach(0.5, 9, policy(), None, "text") is None
    assert out_of_reach(None, 9, policy(threshold=1.0), None, "text") is None
    assert out_of_reach(0.0, 9, policy(signal="none"), None, "text") is None


def test_nothing_is_out_of_reach_where_a_better_signal_means_a_worse_answer() -> None:
    falling = msgspec.structs.replace(GATE.groups["code"], map=Logistic(-4.0, 2.0))
    gate = msgspec.structs.replace(GATE, groups={"code": falling}).sealed()
    assert judge(0.9, policy(), gate, "code").state == "below_threshold"
    assert out_of_reach(0.9, 9, policy(), gate, "code") is None
