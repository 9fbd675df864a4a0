"""Topics that a policy names."""

import pytest
from hybrid.router.detect.scan import Scan
from hybrid.router.detect.topics import find_topics


@pytest.mark.parametrize("text", ["The diagnosis came.", "DIAGNOSIS:", "my\nblood-pressure", "self\u2011harm", "(hiv)"])
def test_a_topic_is_found_as_whole_words_across_case_and_marks(text: str) -> None:
    assert len(find_topics(Scan(text), ("diagnosis", "blood pressure", "self-harm", "hiv"))) == 1


@pytest.mark.parametrize("text", ["diagnostic", "blood and pressure", "archive", "harm yourself"])
def test_a_part_of_a_word_is_no_topic(text: str) -> None:
    assert len(find_topics(Scan(text), ("diagnosis", "blood pressure", "self-harm", "hiv"))) == 0
