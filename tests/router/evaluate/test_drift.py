"""The alarm rings for other data and stays silent for more of the same."""

from pathlib import Path

import numpy as np
import pytest
from hybrid.router.evaluate.drift import FEATURES, distance, features_of, shifts
from hybrid.router.evaluate.folds import fold_of
from hybrid.router.evaluate.outcomes import read_outcomes
from hybrid.tests.router.evaluate import slow
from hypothesis import given
from hypothesis import strategies as st


def test_the_distance_by_hand() -> None:
    assert distance(np.array([1.0, 2, 3, 4]), np.array([3.0, 4, 5, 6])) == 0.5
    assert distance(np.array([1.0, 1]), np.array([1.0])) == 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=15), st.lists(st.integers(0, 5), min_size=1, max_size=15))
def test_the_distance_is_that_of_the_definition(one: list[int], other: list[int]) -> None:
    assert distance(np.array(one, dtype=np.float64), np.array(other, dtype=np.float64)) == pytest.approx(slow.distance(one, other))


def test_chance_alone_hardly_ever_rings() -> None:
    random = np.random.default_rng(0)
    for size in (20, 200, 2000):
        for _ in range(50):
            found = shifts({"a": random.normal(size=300)}, {"a": random.normal(size=size)})
            assert not any(shift.drifted for shift in found), (size, found)


def test_a_shift_that_matters_rings_and_a_real_but_small_one_does_not() -> None:
    random = np.random.default_rng(1)
    reference = {"a": random.normal(size=20_000), "b": random.normal(size=20_000)}
    found = shifts(reference, {"a": random.normal(size=20_000) + 0.1, "b": random.normal(size=20_000) + 0.5})
    assert [(shift.name, shift.drifted) for shift in found] == [("b", True), ("a", False)]


def test_few_rows_are_no_proof() -> None:
    reference = {"a": np.arange(1000.0)}
    assert not shifts(reference, {"a": np.array([999.0, 998, 997])})[0].drifted
    assert shifts(reference, {"a": np.full(30, 999.0)})[0].drifted


def test_features_are_numbers_of_known_names() -> None:
    found = features_of(["Solve 3 + 4.", "Hi"])
    assert list(found) == list(FEATURES)
    assert found["characters"].tolist() == [12, 2] and found["numbers"].tolist() == [2, 0]


def test_the_other_public_set_rings_and_the_held_out_half_does_not(gsm8k: Path, mixed: Path) -> None:
    """Row G64."""
    rows = read_outcomes(mixed)
    half = fold_of([row.group for row in rows], 2)
    one, two = (features_of([row.prompt for row, part in zip(rows, half, strict=True) if part == side]) for side in (0, 1))
    assert not any(shift.drifted for shift in shifts(one, two))
    other = shifts(one, features_of([row.prompt for row in read_outcomes(gsm8k)]))
    assert any(shift.drifted for shift in other)
