"""Intervals hold what they say, come out the same each time, and compare on equal resamples."""

import numpy as np
import pytest
from hybrid.router.evaluate.bootstrap import CHUNK, interval, measure, resample
from hybrid.router.evaluate.figure import Floats, Undefined


def means(**columns: Floats):  # type: ignore[no-untyped-def]
    return lambda weights: {name: weights @ values / weights.sum(axis=1) for name, values in columns.items()}


def test_rows_of_a_group_are_drawn_together_and_as_many_groups_as_there_are() -> None:
    weights = np.concatenate(list(resample(["a", "b", "a", "c", "b"], CHUNK + 3, seed=0)))
    assert weights.shape == (CHUNK + 3, 5)
    assert (weights[:, 0] == weights[:, 2]).all() and (weights[:, 1] == weights[:, 4]).all()
    assert (weights[:, 0] + weights[:, 1] + weights[:, 3] == 3).all()
    assert (weights[:, 0] == 0).any() and (weights[:, 0] == 3).any()


def test_the_same_seed_draws_the_same() -> None:
    one, two, other = (np.concatenate(list(resample(list("abcdefgh"), 50, seed))) for seed in (1, 1, 2))
    assert (one == two).all() and (one != other).any()


def test_the_interval_of_a_mean_is_that_of_the_normal_law() -> None:
    values = np.random.default_rng(5).normal(size=400)
    found = measure([str(n) for n in range(400)], means(mean=values), resamples=2000)
    low, high = found.interval("mean")  # type: ignore[misc]
    half = 1.96 * values.std() / 20
    assert found.value["mean"] == pytest.approx(values.mean())
    assert low == pytest.approx(values.mean() - half, abs=0.012) and high == pytest.approx(values.mean() + half, abs=0.012)


def test_copies_of_a_prompt_do_not_narrow_the_interval() -> None:
    values = np.random.default_rng(6).normal(size=100)
    low, high = measure([str(n) for n in range(100)], means(mean=values)).interval("mean")  # type: ignore[misc]
    copied = measure([str(n % 100) for n in range(400)], means(mean=np.tile(values, 4)))
    low4, high4 = copied.interval("mean")  # type: ignore[misc]
    assert (low4, high4) == pytest.approx((low, high))


def test_a_difference_is_taken_on_equal_resamples() -> None:
    values = np.random.default_rng(7).normal(size=200)
    found = measure([str(n) for n in range(200)], means(one=values + 0.01, other=values))
    value, (low, high) = found.difference("one", "other")  # type: ignore[misc]
    assert value == pytest.approx(0.01) and (low, high) == pytest.approx((0.01, 0.01))


def test_a_figure_that_some_resamples_do_not_have_has_no_interval() -> None:
    assert interval(np.array([1.0, np.nan, 2.0])) == Undefined("undefined on 1 of 3 resamples")
