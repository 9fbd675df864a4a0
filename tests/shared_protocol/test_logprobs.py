"""Reported log-probabilities."""

import math

import numpy as np
import pytest
from hybrid.shared_protocol.sampling import top_logprobs
from hybrid.tests.support.sampling import row


def test_reported_log_probabilities_are_of_the_raw_distribution() -> None:
    logits = np.log(np.array([0.5, 0.25, 0.125, 0.125])).astype(np.float32)
    logprob, top = top_logprobs(logits, 3, 3)
    assert logprob == pytest.approx(math.log(0.125), abs=1e-6)
    assert [i for i, _ in top] == [0, 1, 2]
    assert [p for _, p in top] == pytest.approx([math.log(0.5), math.log(0.25), math.log(0.125)], abs=1e-6)


def test_masked_tokens_are_not_among_the_most_likely() -> None:
    logprob, top = top_logprobs(row(0, -math.inf, 0), 0, 20)
    assert [i for i, _ in top] == [0, 2] and logprob == pytest.approx(-math.log(2))
    assert top_logprobs(row(0, -math.inf, 0), 0, 0)[1] == ()
