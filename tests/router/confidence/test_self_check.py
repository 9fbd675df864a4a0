"""Whether the model agrees with itself, and what it says when it is asked."""

import math

import numpy as np
import pytest
from hybrid.router.confidence.self_check import agreement, ask_whether_true, probability_of_true

FORMS = ["True", "true", " True", " true", "Yes", "yes", " Yes", " yes", "False", "false", " False", " false", "No", "no", " No", " no"]


class Words:
    """One token per form of the words; everything else is token 16."""

    def encode(self, text: str) -> list[int]:
        return [FORMS.index(text) if text in FORMS else 16]


def logits_of(probabilities: dict[str, float]) -> np.ndarray:
    rest = 1 - sum(probabilities.values())
    return np.log([probabilities.get(form, 1e-30) for form in FORMS] + [rest]).astype(np.float32) + np.float32(7)


def test_all_ways_to_say_it_count_and_other_words_do_not() -> None:
    said = {"True": 0.2, " yes": 0.1, "False": 0.05, " No": 0.05}
    assert probability_of_true(logits_of(said), Words()) == pytest.approx(0.3 / 0.4, abs=1e-5)


def test_a_model_that_says_neither_tells_nothing() -> None:
    logits = np.full(17, -np.inf, np.float32)
    logits[16] = 0
    assert probability_of_true(logits, Words()) == 0.5


def test_the_question_follows_the_answer() -> None:
    asked = ask_whether_true([{"role": "user", "content": "2 + 2?"}], "4")
    assert [message["role"] for message in asked] == ["user", "assistant", "user"]
    assert asked[1]["content"] == "4"


def test_agreement_is_the_mean_share_of_words_in_common() -> None:
    assert agreement("The answer is 12.", ["the answer is 12 .", "the answer is 12."]) == 1
    assert agreement("12", ["13", "12"]) == 0.5
    assert agreement("a b", ["a c"]) == 0.5
    assert agreement("a a b", ["a"]) == pytest.approx(2 * 1 / 4)
    assert agreement("", [""]) == 1
    assert math.isclose(agreement("x = f(1)", ["x = f(2)"]), 2 * 5 / 12)


def test_agreement_with_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="sample"):
        agreement("12", [])
