"""A turn is read once, and each of its parts has the words that it has alone."""

import pytest
from hybrid.router.complexity.reading import FEATURES, HEAD, TAIL, Reading
from hybrid.router.detect.scan import words_of

WORDS = "Prove it, don't guess: ÉTÉ — naïve x2 Σίσυφος 日本語 "


@pytest.mark.parametrize(
    "length", [0, 40, HEAD - 1, HEAD, HEAD + 1, HEAD + TAIL, HEAD + TAIL + 1, FEATURES + TAIL, FEATURES + TAIL + 1, 9_000]
)
@pytest.mark.parametrize("letter", ["a", "İ"])  # the second has a small form of two characters
def test_the_words_of_each_part_are_those_of_the_part_alone(length: int, letter: str) -> None:
    text = (f"{letter}b {WORDS}" * (length // len(WORDS) + 1))[:length]
    reading = Reading(text)
    task = text if length <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"
    features = text if length <= FEATURES + TAIL else f"{text[:FEATURES]}\n{text[-TAIL:]}"
    assert (reading.task.seen, reading.features.seen) == (task, features)
    assert reading.features.words == words_of(features)
    assert reading.task.words == words_of(task)
    assert reading.head_words == words_of(text[:HEAD])
    assert reading.task.distinct == set(words_of(task))
