"""An answer that is lost is given up early, and right ones hardly ever."""

import math
import random

import msgspec
import pytest
from hybrid.router.confidence.early import best_possible, is_lost, lowest, stop_bound, tokens_computed
from hybrid.router.confidence.signals import confidence
from hybrid.router.confidence.token_signal import TokenSignal
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.tables import Signal
from hybrid.shared_protocol.errors import CannotPromise, InvalidRequest
from hypothesis import given
from hypothesis import strategies as st


def test_it_is_given_up_where_the_mean_so_far_sinks_below_the_bound() -> None:
    logprobs = [-0.1] * 10 + [-2.0] * 30
    # after k low tokens: (1 + 2 k) / (10 + k) > log 2 at the seventh
    assert tokens_computed(logprobs, after=1, below=0.5) == 10 + math.ceil((10 * math.log(2) - 1) / (2 - math.log(2)))
    assert tokens_computed(logprobs, after=30, below=0.5) == 30
    assert tokens_computed(logprobs, after=1, below=0.1) == 40


def test_never_means_never() -> None:
    assert not is_lost(-math.inf, 100, after=1, below=0.0)
    assert not is_lost(math.nan, 100, after=1, below=1.0)
    assert is_lost(-math.inf, 100, after=1, below=1e-9)


def test_an_answer_that_ends_before_it_could_be_given_up_is_not() -> None:
    assert lowest([-9.0] * 7, after=8) == 1.0
    assert tokens_computed([-9.0] * 7, after=8, below=1.0) == 7
    assert lowest([-9.0] * 8, after=8) == pytest.approx(math.exp(-9.0))


def answers(source: random.Random, number: int) -> list[list[float]]:
    return [[-source.expovariate(3 + 4 * ease) for _ in range(60)] for ease in (source.random() for _ in range(number))]


def test_right_answers_are_given_up_no_more_often_than_was_said() -> None:
    source, given_up, loss = random.Random(5), [], 0.1
    for _ in range(40):
        bound = stop_bound(answers(source, 39), after=8, loss=loss)
        given_up += [lowest(logprobs, 8) < bound for logprobs in answers(source, 50)]
    # k - 1 of n + 1 = 3 of 40 lie below the k-th lowest on average, and the bound itself makes it 4
    share = sum(given_up) / len(given_up)
    assert 0.05 < share <= loss + 0.01


def test_the_bound_is_the_kth_lowest_of_their_lowest_means() -> None:
    right = [[math.log(p)] * 20 for p in (0.9, 0.5, 0.8, 0.7)]
    assert stop_bound(right, after=4, loss=0.2) == pytest.approx(0.5)
    assert stop_bound(right, after=4, loss=0.4) == pytest.approx(0.7)


def test_too_few_right_answers_promise_nothing() -> None:
    with pytest.raises(CannotPromise, match="19 right answers are the least"):
        stop_bound([[-0.1] * 20] * 18, after=4, loss=0.05)
    assert stop_bound([[-0.1] * 20] * 19, after=4, loss=0.05) == pytest.approx(math.exp(-0.1))
    with pytest.raises(InvalidRequest):
        stop_bound([[-0.1]], after=4, loss=0.0)


def test_only_answers_that_get_so_long_count() -> None:
    short, long = [[-5.0] * 3] * 50, [[math.log(0.7)] * 20] * 3
    assert stop_bound(short + long, after=4, loss=0.25) == pytest.approx(0.7)
    with pytest.raises(CannotPromise, match="from 3 of 4 tokens or more"):
        stop_bound(short + long, after=4, loss=0.2)


TOKENS = st.lists(st.tuples(st.floats(-9.0, 0.0), st.just(1.0), st.just(1.0)), min_size=2, max_size=20)


@given(st.sampled_from(["minimum", "total", "mean", "length_corrected"]), TOKENS, st.integers(1, 19), st.integers(0, 5))
def test_no_answer_ends_better_than_was_possible(signal: Signal, found: list[tuple[float, float, float]], at: int, spare: int) -> None:
    whole = [TokenSignal(*token) for token in found]
    begun = [token.logprob for token in whole[: max(1, min(at, len(whole) - 1))]]
    best = best_possible(signal, logprob_sum=sum(begun), lowest=min(begun), max_tokens=len(whole) + spare)
    value = confidence(whole, msgspec.structs.replace(Policy.default().confidence, signal=signal))
    assert best is not None and value is not None and value <= best + 1e-12


def test_what_could_still_be_anything_is_not_guessed() -> None:
    assert best_possible("quantile", logprob_sum=-9.0, lowest=-9.0, max_tokens=10) is None
    assert best_possible("mean", logprob_sum=-9.0, lowest=-9.0, max_tokens=None) is None
    assert best_possible("total", logprob_sum=-9.0, lowest=-9.0, max_tokens=None) == pytest.approx(math.exp(-9))
