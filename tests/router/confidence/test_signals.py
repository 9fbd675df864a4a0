"""How far a local answer is trusted."""

import math
from typing import get_args

import msgspec
import numpy as np
import pytest
from hybrid.router.confidence.signals import SIGNALS, confidence
from hybrid.router.confidence.token_signal import TokenSignal, token_signal
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.tables import ConfidencePolicy, Signal
from hypothesis import given
from hypothesis import strategies as st

POLICY = Policy.default().confidence


def tokens(logprobs: list[float]) -> list[TokenSignal]:
    """Tokens of which only the log-probability is of interest."""
    return [TokenSignal(logprob, margin=1.0, entropy=1.0) for logprob in logprobs]


def by(signal: Signal, **changes: float) -> ConfidencePolicy:
    return msgspec.structs.replace(POLICY, signal=signal, **changes)


def test_every_signal_of_the_policy_is_there() -> None:
    assert {*SIGNALS, "probe", "p_true", "agreement", "none"} == set(get_args(Signal))


def test_certain_tokens_give_full_confidence_and_impossible_ones_none() -> None:
    assert confidence(tokens([0.0, 0.0, 0.0]), POLICY) == 1.0
    assert confidence(tokens([-math.inf] * 3), POLICY) == pytest.approx(0.0, abs=1e-20)


LOGPROBS = [math.log(p) for p in (0.9, 0.5, 0.99, 0.1, 0.7, 0.8)]


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        ("blend", math.exp(0.75 * np.mean(LOGPROBS) + 0.25 * np.quantile(LOGPROBS, 0.2))),
        ("mean", (0.9 * 0.5 * 0.99 * 0.1 * 0.7 * 0.8) ** (1 / 6)),
        ("quantile", np.quantile([0.9, 0.5, 0.99, 0.1, 0.7, 0.8], 0.2)),  # rank 1 exactly: 0.5
        ("minimum", 0.1),
        ("total", 0.9 * 0.5 * 0.99 * 0.1 * 0.7 * 0.8),
        ("length_corrected", (0.9 * 0.5 * 0.99 * 0.1 * 0.7 * 0.8) ** (1 / math.sqrt(6))),
    ],
)
def test_what_is_made_of_the_tokens_probabilities(signal: Signal, expected: float) -> None:
    assert confidence(tokens(LOGPROBS), by(signal, quantile=0.2, quantile_weight=0.25)) == pytest.approx(expected)


def test_what_is_made_of_the_distributions_behind_them() -> None:
    two = [token_signal(np.log([0.6, 0.2, 0.2]).astype(np.float32), 0), token_signal(np.log([0.25] * 4).astype(np.float32), 3)]
    entropy = -(0.6 * math.log(0.6) + 0.4 * math.log(0.2)), math.log(4)
    expected = {
        "margin": ((0.6 - 0.2) / (0.6 + 0.2) + 0) / 2,
        "margin_quantile": 0.2 * (0.6 - 0.2) / (0.6 + 0.2),
        "entropy": math.exp(-sum(entropy) / 2),
        "entropy_quantile": math.exp(-(0.8 * entropy[1] + 0.2 * entropy[0])),
    }
    for signal, value in expected.items():
        assert confidence(two, by(signal, quantile=0.2)) == pytest.approx(value, abs=1e-5), signal


def test_an_answer_twice_as_long_is_not_half_as_trusted() -> None:
    once, long = (confidence(tokens([-0.5] * n), by("blend")) for n in (20, 400))
    assert once == pytest.approx(math.exp(-0.5)) == long


def test_a_few_bad_tokens_among_many_good_ones_show() -> None:
    good = confidence(tokens([-0.01] * 100), by("blend"))
    some_bad = confidence(tokens([-0.01] * 88 + [-4.0] * 12), by("blend"))
    assert good is not None and some_bad is not None
    assert good > 0.95 and some_bad < 0.2 < math.exp(-(88 * 0.01 + 12 * 4) / 100)  # the mean alone says 0.61


@pytest.mark.parametrize("signal", get_args(Signal))
@pytest.mark.parametrize(
    "found",
    [
        [],
        tokens([math.nan]),
        tokens([-1.0, math.nan]),
        tokens([0.5]),
        [TokenSignal(-1.0, -0.5, 1.0)],
        [TokenSignal(-1.0, 0.5, math.nan)],
    ],
)
def test_without_true_log_probabilities_there_is_no_confidence(signal: Signal, found: list[TokenSignal]) -> None:
    assert confidence(found, by(signal)) is None


TOKEN = st.builds(TokenSignal, st.floats(max_value=0.0, allow_nan=False), st.floats(0.0, allow_nan=False), st.floats(0.0, 20.0))


@given(st.sampled_from(list(SIGNALS)), st.lists(TOKEN, min_size=1, max_size=50))
def test_it_lies_between_0_and_1(signal: Signal, found: list[TokenSignal]) -> None:
    value = confidence(found, by(signal))
    assert value is not None and 0.0 <= value <= 1.0


LESS_SURE = st.tuples(st.floats(-30.0, 0.0), st.floats(0.0, 30.0), st.floats(0.0, 10.0))


@given(st.sampled_from(list(SIGNALS)), st.lists(LESS_SURE, min_size=1, max_size=30), st.integers(0, 29), st.floats(0.0, 5.0))
def test_a_token_that_is_less_sure_never_raises_it(signal: Signal, found: list[tuple[float, float, float]], at: int, worse: float) -> None:
    before = [TokenSignal(*token) for token in found]
    token = before[at % len(before)]
    after = before[:]
    after[at % len(before)] = TokenSignal(token.logprob - worse, max(0.0, token.margin - worse), token.entropy + worse)
    sure, less = confidence(before, by(signal)), confidence(after, by(signal))
    assert sure is not None and less is not None and less <= sure + 1e-12
