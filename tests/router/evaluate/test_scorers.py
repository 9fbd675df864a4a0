"""The baselines know what they say they know; the ridge solves its equations."""

from collections.abc import Sequence

import numpy as np
import pytest
from hybrid.router.evaluate.outcomes import Outcome
from hybrid.router.evaluate.scorers import Length, Oracle, Random, Scorer, baselines
from hybrid.router.evaluate.tfidf_ridge import TfidfRidge
from hybrid.router.learned.hashed import Sparse, solve_ridge

ROWS = [
    Outcome("a", "solve the equation x = 3", 0, 1),
    Outcome("b", "name a colour", 1, 1),
    Outcome("c", "solve the riddle", 0, 1),
    Outcome("d", "name a river", 1, 0),
    Outcome("e", "Name  a  RIVER", 0, 1),
]


NAMES = ["random", "length", "tfidf_ridge", "oracle"]


def scores_of(scorer: Scorer, prompts: Sequence[str]) -> list[float]:
    scorer.fit(ROWS)
    found = scorer.score(prompts)
    assert found.dtype == np.float64 and found.shape == (len(prompts),) and np.isfinite(found).all()
    return found.tolist()


def test_length_counts_characters_and_chance_draws_once_per_prompt() -> None:
    assert scores_of(Length(), ["", "abc", "äöü€"]) == [0, 3, 4]
    drawn = scores_of(Random(), [f"prompt {n}" for n in range(2000)] + ["Prompt  0"])
    assert drawn[0] == drawn[-1] and min(drawn) >= 0 and max(drawn) < 1
    assert abs(np.mean(drawn) - 0.5) < 0.03 and abs(np.var(drawn) - 1 / 12) < 0.01  # five standard errors
    assert drawn != scores_of(Random(seed=1), [f"prompt {n}" for n in range(2000)] + ["Prompt  0"])


def test_the_oracle_knows_the_gain_of_each_prompt() -> None:
    assert scores_of(Oracle(ROWS), [row.prompt for row in ROWS]) == [1, 0, 1, 0, 0]  # the river was once worth it and once not


def test_the_ridge_ranks_by_the_words_that_gained() -> None:
    ridge = TfidfRidge()
    solve, name, nothing = scores_of(ridge, ["solve this", "name that", ""])
    assert solve > nothing > name
    assert nothing == pytest.approx(2 / 5)  # the mean gain
    assert scores_of(ridge, ["\ud800 \U0010ffff", "ß" * 10_000])  # any text has a score


def test_the_same_rows_give_the_same_ridge_to_the_last_bit() -> None:
    assert scores_of(TfidfRidge(), ["solve a river"]) == scores_of(TfidfRidge(), ["solve a river"])


@pytest.mark.parametrize("ridge", [0.01, 1.0, 30.0])
def test_conjugate_gradients_find_what_a_direct_solver_finds(ridge: float) -> None:
    random = np.random.default_rng(3)
    dense = np.where(random.random((40, 15)) < 0.3, random.normal(size=(40, 15)), 0.0)
    target = random.normal(size=40)
    row, column = np.nonzero(dense)
    found = solve_ridge(Sparse(row, column, dense[row, column], dense.shape), target, ridge, tolerance=1e-12)
    np.testing.assert_allclose(found, np.linalg.solve(dense.T @ dense + ridge * np.eye(15), dense.T @ target), atol=1e-9)


def test_a_ridge_without_anything_to_learn_says_the_mean() -> None:
    same = [Outcome(str(n), f"word {n}", 0.5, 0.75) for n in range(4)]
    ridge = TfidfRidge()
    ridge.fit(same)
    assert ridge.score(["word 1", "else"]).tolist() == [0.25, 0.25]


def test_the_baselines_have_the_names_of_the_report() -> None:
    assert {name: make().name for name, make in baselines(ROWS).items()} == {name: name for name in NAMES}
