"""What the filters mean, against examples and exact fractions."""

import math
from fractions import Fraction

import numpy as np
from hybrid.tests.support.sampling import kept, row
from hypothesis import given
from hypothesis import strategies as st


def test_top_k_settles_ties_by_the_lowest_id() -> None:
    assert kept(row(1, 3, 2, 3, 2, 2), top_k=3) == [1, 2, 3]


def test_top_k_never_keeps_a_masked_token() -> None:
    assert kept(row(1, -math.inf, 2, -math.inf), top_k=4) == [0, 2]


def test_top_p_keeps_the_smallest_prefix_that_reaches_p() -> None:
    logits = np.log(np.array([0.5, 0.25, 0.125, 0.125])).astype(np.float32)
    assert kept(logits, top_p=0.49) == [0]
    assert kept(logits, top_p=0.7) == [0, 1]
    assert kept(logits, top_p=0.8) == [0, 1, 2]  # the tie of 2 and 3 goes to the lower id
    assert kept(logits, top_p=0.9) == [0, 1, 2, 3]


def test_top_p_counts_only_what_top_k_left() -> None:
    logits = np.log(np.array([0.4, 0.3, 0.2, 0.1])).astype(np.float32)
    assert kept(logits, top_k=2, top_p=0.5) == [0]  # 0.4 / 0.7 = 0.57
    assert kept(logits, top_p=0.5) == [0, 1]


def test_min_p_is_relative_to_the_most_likely_token() -> None:
    logits = np.log(np.array([0.5, 0.26, 0.14, 0.1])).astype(np.float32)
    assert kept(logits, min_p=0.5) == [0, 1]
    assert kept(logits, min_p=0.25) == [0, 1, 2]
    assert kept(logits, min_p=0.5, temperature=0.5) == [0]  # 0.52^2 < 0.5


def test_temperature_is_applied_before_the_filters() -> None:
    logits = np.log(np.array([0.6, 0.4])).astype(np.float32)
    assert kept(logits, top_p=0.65, temperature=1.0) == [0, 1]
    assert kept(logits, top_p=0.65, temperature=0.5) == [0]  # 0.36 / 0.52 = 0.69


@given(weights=st.lists(st.integers(1, 1000), min_size=1, max_size=12), p=st.integers(1, 99))
def test_top_p_agrees_with_exact_fractions(weights: list[int], p: int) -> None:
    logits = np.log(np.array(weights, dtype=np.float64)).astype(np.float32)
    order = sorted(range(len(weights)), key=lambda i: (-weights[i], i))
    mass, total, expected = Fraction(0), sum(weights), []
    for i in order:
        expected.append(i)
        mass += Fraction(weights[i], total)
        if abs(mass - Fraction(p, 100)) < Fraction(1, 10**5):
            return  # float32 logits cannot tell
        if mass >= Fraction(p, 100):
            break
    assert kept(logits, top_p=p / 100) == sorted(expected)
