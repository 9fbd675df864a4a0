"""What is learned from outcomes, and that it holds on outcomes that were not seen."""

from pathlib import Path

import numpy as np
import pytest
from hybrid.router.evaluate.curve import Curves, apgr
from hybrid.router.evaluate.folds import fold_of, held_out
from hybrid.router.evaluate.outcomes import Outcome, read_outcomes
from hybrid.router.evaluate.reliability import Reliability
from hybrid.router.evaluate.scorers import Forecaster, Length, Scorer
from hybrid.router.evaluate.tfidf_ridge import TfidfRidge
from hybrid.router.learned.explain import explain
from hybrid.router.learned.model import Model, predict, raw_scores
from hybrid.router.learned.ours import Ours
from hybrid.router.learned.store import to_bytes
from hybrid.router.learned.train import check_enough, data_hash, train
from hybrid.shared_protocol.errors import InvalidRequest
from hybrid.tests.router.learned.outcomes import made_up, trained_router
from hybrid.tests.support.routing_data import GSM8K, MIXED, Known, path_of

SUM = "A sailor at the pier owns 40 nets and buys 12 more in each of 3 weeks. Then he sells 20% for 2.50 coins. How many coins has he?"
EASY = "where can i see nets near the pier"


@pytest.fixture(scope="module")
def model() -> Model:
    return trained_router()


def test_it_knows_which_prompts_the_device_fails(model: Model) -> None:
    hard, easy = predict(model, SUM), predict(model, EASY)
    assert hard.p_edge < 0.45 < 0.7 < easy.p_edge
    assert hard.p_cloud > 0.75 and easy.p_cloud > 0.75
    assert hard.gain > 0.45 > 0.3 > easy.gain
    assert hard.rank > 0.5 > easy.rank


def test_what_is_unlike_all_it_has_seen_is_unknown(model: Model) -> None:
    seen = [predict(model, row.prompt).unknown for row in made_up(seed=2)]
    for text in (
        "```\nclass Tree:\n    def grow(self):\n        return []\n```\n" * 9,
        "多少钱？" * 40,
        "A) 1\nB) 2\nC) $x^2$ \\frac{1}{2}",
    ):
        assert predict(model, text).unknown > np.quantile(seen, 0.99)
    assert min(seen) >= 0 and max(seen) <= 1


def test_any_text_has_a_prediction(model: Model) -> None:
    for text in ("", " ", "\ud800", "9" * 5000, "?" * 5000, "^", "$1", "\x00"):
        found = predict(model, text)
        assert all(0 <= value <= 1 for value in (found.p_edge, found.p_cloud, found.rank, found.unknown)) and abs(found.gain) < 3
        explain(model, text)


def test_the_same_rows_give_the_same_bytes(model: Model) -> None:
    assert to_bytes(train(made_up(), edge="small", cloud="large", trained="2024-05-01")) == to_bytes(model)
    assert data_hash(made_up()) == data_hash(made_up()[::-1]) != data_hash(made_up(seed=2))


def test_both_blocks_are_solved_together() -> None:
    """Against one direct solution over all columns at once."""
    from hybrid.router.learned import train as module
    from hybrid.router.learned.hashed import Counts, marked_terms_of
    from hybrid.router.learned.model import standard, waves_of
    from hybrid.router.learned.traits import traits_of

    rows = made_up(60)
    model = train(rows)
    texts = [row.prompt for row in rows]
    tfidf = Counts.of(texts, module.BUCKETS, marked_terms_of).times(model.idf.astype(float))
    used, place = np.unique(tfidf.column, return_inverse=True)
    dense = np.zeros((60, len(used)))
    dense[tfidf.row, place] = tfidf.value
    wave = waves_of(standard(np.array([traits_of(text) for text in texts]), model.centre, model.scale), model.directions, model.phases)
    both = np.hstack([dense, wave])
    ridge = np.diag([module.RIDGE_TERMS] * len(used) + [module.RIDGE_WAVES] * wave.shape[1])
    scores = np.array([[row.weak, row.strong] for row in rows])
    weights = np.linalg.solve(both.T @ both + ridge, both.T @ (scores - scores.mean(axis=0)))
    np.testing.assert_allclose(raw_scores(model, texts)[0], both @ weights + scores.mean(axis=0), atol=2e-4)


def test_held_out_it_beats_the_baselines_and_its_probabilities_hold() -> None:
    rows = made_up(400, seed=5)
    fold = fold_of([row.group for row in rows], 5)
    weak, strong = np.array([row.weak for row in rows]), np.array([row.strong for row in rows])
    ours = held_out(Ours, rows, fold)
    assert isinstance(Ours(), Forecaster) and ours.weak is not None
    ones = np.ones((1, len(rows)))
    assert apgr(*Curves(ours.scores, weak, strong).points(ones))[0] > 0.7
    assert Reliability(ours.weak, weak).ece(ones)[0] < 0.08


@pytest.mark.parametrize("known", [MIXED, GSM8K], ids=["mixed", "gsm8k"])
def test_on_public_outcomes_it_beats_length_and_the_ridge(known: Known) -> None:
    """Two folds, and of the large set a fourth, so that it is quick; the figures over all of them are those of `hybrid route test`."""
    path: Path = path_of(known)
    rows = read_outcomes(path)[:: 4 if known is MIXED else 1]
    fold = fold_of([row.group for row in rows], 2)
    weak, strong = np.array([row.weak for row in rows]), np.array([row.strong for row in rows])
    ones = np.ones((1, len(rows)))

    def reached(make: type[Scorer]) -> float:
        return float(apgr(*Curves(held_out(make, rows, fold).scores, weak, strong).points(ones))[0])

    assert reached(Ours) > max(reached(Length), reached(TfidfRidge))


def test_few_rows_can_be_scored_but_are_not_enough_to_be_of_use() -> None:
    few = made_up(6)
    scorer = Ours()
    scorer.fit(few)
    assert np.isfinite(scorer.score([SUM])).all()
    with pytest.raises(InvalidRequest, match="6 different prompts are too few"):
        check_enough(few)
    same = [Outcome(row.id, row.prompt, 1.0, row.strong) for row in made_up()]
    with pytest.raises(InvalidRequest, match="weak model has the same score on every row"):
        check_enough(same)
    with pytest.raises(InvalidRequest, match="learned nothing"):
        Ours().score([SUM])


def test_it_says_what_moved_the_score(model: Model) -> None:
    found = explain(model, SUM, most=24)
    traits = {part.words: part.gain for part in found.traits}
    assert max(traits.values()) > 0.01
    assert not any(word in words for words in traits for word in ("sailor", "nets", "coins"))
    terms = {part.words: part.gain for part in found.terms}
    assert terms["“coins”"] > 0
    assert "“see”" in {part.words for part in explain(model, EASY, most=24).terms}


def test_the_parts_of_words_add_up_to_what_words_add(model: Model) -> None:
    from hybrid.router.learned.hashed import Counts, marked_terms_of

    tfidf = Counts.of([SUM], len(model.idf), marked_terms_of).times(model.idf.astype(float))
    gain = (model.terms[:, 1] - model.terms[:, 0]).astype(float)
    assert sum(part.gain for part in explain(model, SUM, most=1000).terms) == pytest.approx(float(tfidf.of(gain)[0]))
