"""What is read off a distribution, held to its definition in double precision."""

import math

import numpy as np
import pytest
from hybrid.router.confidence.token_signal import token_signal
from hybrid.shared_protocol.sampling import top_logprobs
from hypothesis import given
from hypothesis import strategies as st

LOGITS = st.lists(st.floats(-60, 60, width=32), min_size=2, max_size=40)


@given(LOGITS, st.integers(0, 39))
def test_it_is_the_definition_over_all_tokens(values: list[float], at: int) -> None:
    logits, token = np.array(values, np.float32), at % len(values)
    found = token_signal(logits, token)
    wide = np.array(values, np.float64)
    logprobs = wide - np.logaddexp.reduce(wide)
    first, second = np.sort(logprobs)[::-1][:2]
    assert found.logprob == pytest.approx(logprobs[token], abs=1e-4) == pytest.approx(top_logprobs(logits, token, 0)[0], abs=1e-4)
    assert found.margin == pytest.approx(first - second, abs=1e-4)
    assert found.entropy == pytest.approx(-(np.exp(logprobs) * logprobs).sum(), abs=1e-4)


def test_equal_logits_have_no_margin_and_the_most_entropy() -> None:
    found = token_signal(np.zeros(1000, np.float32), 7)
    assert found.margin == 0
    assert found.entropy == pytest.approx(math.log(1000), rel=1e-5)


def test_masked_tokens_count_for_nothing() -> None:
    masked = np.array([1.0, -np.inf, 0.0, -np.inf], np.float32)
    found, alone = token_signal(masked, 2), token_signal(np.array([1.0, 0.0], np.float32), 1)
    assert (found.logprob, found.margin, found.entropy) == pytest.approx((alone.logprob, alone.margin, alone.entropy))
    assert token_signal(masked, 1).logprob == -math.inf
    assert token_signal(np.array([3.0], np.float32), 0).margin == math.inf
