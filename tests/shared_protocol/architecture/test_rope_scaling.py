"""Rotary frequencies against the functions of transformers, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hybrid.shared_protocol.architecture.rope_scaling import (
    divided_frequencies,
    linear_frequencies,
    llama3_frequencies,
    longrope_magnitude,
    plain_frequencies,
    yarn_frequencies,
    yarn_magnitude,
)
from hybrid.tests.support.family_goldens import GOLDENS


def test_plain_frequencies_fall_from_one_to_almost_the_inverse_of_the_base() -> None:
    assert plain_frequencies(8, 10_000.0) == pytest.approx((1.0, 0.1, 0.01, 0.001))


def test_linear_scaling_and_factors_divide() -> None:
    assert linear_frequencies((1.0, 0.1), 4.0) == (0.25, 0.025)
    assert divided_frequencies((1.0, 0.1), (2.0, 5.0)) == pytest.approx((0.5, 0.02))


def test_yarn_is_that_of_transformers() -> None:
    *frequencies, magnitude = np.load(GOLDENS)["frequencies-yarn"]  # 128 inputs, base 10^6, 4 times 32,768 tokens
    np.testing.assert_allclose(yarn_frequencies(128, 1e6, 4.0, 32_768), frequencies, rtol=1e-6)
    assert yarn_magnitude(4.0) == pytest.approx(magnitude)


def test_yarn_keeps_what_turns_often_and_divides_what_never_turns_once() -> None:
    plain, scaled = plain_frequencies(64, 10_000.0), yarn_frequencies(64, 10_000.0, 8.0, 2048)
    assert scaled[0] == plain[0] and scaled[-1] == pytest.approx(plain[-1] / 8)
    assert yarn_magnitude(1.0) == 1.0


def test_llama_3_scaling_is_that_of_transformers() -> None:
    *frequencies, magnitude = np.load(GOLDENS)["frequencies-llama3"]  # 128 inputs, base 500,000, as Llama 3.1 has it
    ours = llama3_frequencies(plain_frequencies(128, 5e5), 8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8192)
    np.testing.assert_allclose(ours, frequencies, rtol=1e-6)
    assert magnitude == 1


def test_the_magnitude_of_longrope_is_that_of_phi_3_with_128k() -> None:
    assert longrope_magnitude(131_072, 4096) == pytest.approx(math.sqrt(1 + 5 / 12))  # 2^17 = 32 * 2^12
    assert longrope_magnitude(4096, 4096) == 1.0
