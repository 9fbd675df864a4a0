"""Folds never part equal prompts, do not depend on the order of the file, and hold out what they say."""

from collections.abc import Sequence

import numpy as np
import pytest
from hybrid.router.evaluate.figure import Floats
from hybrid.router.evaluate.folds import fold_of, held_out
from hybrid.router.evaluate.outcomes import Outcome
from hybrid.shared_protocol.errors import InvalidRequest
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.text(max_size=3), min_size=5, max_size=60), st.integers(2, 5), st.integers(0, 9))
def test_groups_stay_whole_and_folds_are_of_one_size(groups: list[str], folds: int, seed: int) -> None:
    if len(set(groups)) < folds:
        with pytest.raises(InvalidRequest, match="cannot be dealt"):
            fold_of(groups, folds, seed)
        return
    found = dict(zip(groups, fold_of(groups, folds, seed).tolist(), strict=True))
    assert fold_of(groups, folds, seed).tolist() == [found[group] for group in groups]
    assert fold_of(groups[::-1], folds, seed).tolist() == [found[group] for group in groups[::-1]]
    sizes = np.bincount(list(found.values()), minlength=folds)
    assert sizes.max() - sizes.min() <= 1


def test_another_seed_deals_anew_and_one_fold_is_none() -> None:
    groups = [str(n) for n in range(40)]
    assert fold_of(groups, 4, 0).tolist() != fold_of(groups, 4, 1).tolist()
    with pytest.raises(InvalidRequest):
        fold_of(groups, 1)


class Remembers:
    """Scores 1 what it has been shown."""

    name = "remembers"

    def fit(self, rows: Sequence[Outcome]) -> None:
        self._seen = {row.prompt for row in rows}

    def score(self, prompts: Sequence[str]) -> Floats:
        return np.array([float(prompt in self._seen) for prompt in prompts])


def test_no_row_is_scored_by_a_scorer_that_saw_it() -> None:
    rows = [Outcome(str(n), f"prompt {n % 20}", 0, 1) for n in range(60)]
    assert held_out(Remembers, rows, fold_of([row.group for row in rows], 5)).scores.tolist() == [0.0] * 60
