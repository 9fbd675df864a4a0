"""How far a local answer is trusted, and what becomes of it."""

import math

import numpy as np
import pytest
from hybrid.router.confidence.signals import confidence
from hybrid.router.decide import decide, resolve_cascade
from hybrid.router.policy import ConfidencePolicy, Policy
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.runtime import LinkState
from hypothesis import given
from hypothesis import strategies as st

POLICY = Policy.default().confidence
UNCERTAIN = "Write a Python function that reverses a string."


def test_certain_tokens_give_full_confidence_and_impossible_ones_none() -> None:
    assert confidence([0.0, 0.0, 0.0], POLICY) == 1.0
    assert confidence([-math.inf] * 3, POLICY) == pytest.approx(0.0, abs=1e-20)


def test_it_is_a_blend_of_the_mean_and_a_low_quantile() -> None:
    policy = ConfidencePolicy(threshold=0.5, quantile=0.1, quantile_weight=0.25)
    logprobs = [math.log(p) for p in (0.9, 0.5, 0.99, 0.1, 0.7, 0.8)]
    expected = math.exp(0.75 * np.mean(logprobs) + 0.25 * np.quantile(logprobs, 0.1))
    assert confidence(logprobs, policy) == pytest.approx(expected)


def test_an_answer_twice_as_long_is_not_half_as_trusted() -> None:
    once = confidence([-0.5] * 20, POLICY)
    assert once == pytest.approx(math.exp(-0.5)) == confidence([-0.5] * 400, POLICY)


def test_a_few_bad_tokens_among_many_good_ones_show() -> None:
    good = confidence([-0.01] * 100, POLICY)
    some_bad = confidence([-0.01] * 88 + [-4.0] * 12, POLICY)
    assert good is not None and some_bad is not None
    assert good > 0.95 and some_bad < 0.2 < math.exp(-(88 * 0.01 + 12 * 4) / 100)  # the mean alone says 0.61


@pytest.mark.parametrize("logprobs", [[], [math.nan], [-1.0, math.nan], [0.5]])
def test_without_true_log_probabilities_there_is_no_confidence(logprobs: list[float]) -> None:
    assert confidence(logprobs, POLICY) is None


@given(st.lists(st.floats(max_value=0.0, allow_nan=False), min_size=1, max_size=50))
def test_it_lies_between_0_and_1(logprobs: list[float]) -> None:
    found = confidence(logprobs, POLICY)
    assert found is not None and 0.0 <= found <= 1.0


@given(st.lists(st.floats(-30.0, 0.0), min_size=1, max_size=30), st.integers(0, 29), st.floats(0.0, 5.0))
def test_a_less_likely_token_never_raises_it(logprobs: list[float], at: int, worse: float) -> None:
    lowered = logprobs[:]
    lowered[at % len(lowered)] -= worse
    before, after = confidence(logprobs, POLICY), confidence(lowered, POLICY)
    assert before is not None and after is not None and after <= before + 1e-12


def test_a_confident_answer_of_the_device_is_kept_and_the_way_to_the_cloud_is_gone() -> None:
    decision = decide(RouteRequest.of(UNCERTAIN), RouteContext(link=LinkState(reachable=True)))
    assert (decision.route, decision.reason, decision.scores.confidence) == ("cascade", "low_confidence", None)
    kept = resolve_cascade(decision, 0.5, Policy.default())
    assert (kept.route, kept.reason, kept.rule, kept.scores.confidence) == ("edge", "simple", "confidence.threshold", 0.5)
    assert kept.shareable is None and kept.cloud_tokens == 0


@pytest.mark.parametrize("value", [0.499, 0.0, None, math.nan])
def test_a_doubtful_or_unknown_answer_goes_to_the_cloud(value: float | None) -> None:
    decision = decide(RouteRequest.of(UNCERTAIN), RouteContext(link=LinkState(reachable=True)))
    handed_over = resolve_cascade(decision, value, Policy.default())
    assert (handed_over.route, handed_over.reason, handed_over.rule) == ("cascade", "low_confidence", "confidence.threshold")
    assert handed_over.shareable is decision.shareable is not None
    assert handed_over.scores.confidence == (None if value is None or math.isnan(value) else value)


def test_confidence_sends_nothing_of_another_route_to_the_cloud() -> None:
    private = decide(RouteRequest.of("mail bob@example.com"), RouteContext(link=LinkState(reachable=True)))
    resolved = resolve_cascade(private, 0.0, Policy.default())
    assert (resolved.route, resolved.reason, resolved.shareable) == ("edge", "private", None)
