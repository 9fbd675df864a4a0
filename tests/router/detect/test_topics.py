"""Topics that a policy names."""

import sys

import pytest
from hybrid.router.detect.scan import Scan
from hybrid.router.detect.topics import find_topics
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("text", ["The diagnosis came.", "DIAGNOSIS:", "my\nblood-pressure", "self\u2011harm", "(hiv)"])
def test_a_topic_is_found_as_whole_words_across_case_and_marks(text: str) -> None:
    assert len(find_topics(Scan(text), ("diagnosis", "blood pressure", "self-harm", "hiv"))) == 1


@pytest.mark.parametrize("text", ["diagnostic", "blood and pressure", "archive", "harm yourself"])
def test_a_part_of_a_word_is_no_topic(text: str) -> None:
    assert len(find_topics(Scan(text), ("diagnosis", "blood pressure", "self-harm", "hiv"))) == 0


def test_each_topic_is_found_where_it_stands_also_where_several_begin_alike() -> None:
    topics = ("my doctor", "my own doctor", "my", "doctor who", "self-harm")
    text = "He said: My doctor\u2014my  own\nDOCTOR, who? \u0130 mean self-\u2060harm"
    found = sorted((one.start, one.end) for one in find_topics(Scan(text), topics))
    assert [" ".join(text[start:end].split()) for start, end in found] == [
        "My",
        "My doctor",
        "my",
        "my own DOCTOR",
        "DOCTOR, who",
        "self-\u2060harm",
    ]


@given(words=st.lists(st.sampled_from(["my", "own", "doctor", "tummy", "x"]), max_size=12), gap=st.sampled_from([" ", ", ", "-", "7 "]))
def test_it_finds_what_a_search_word_by_word_finds(words: list[str], gap: str) -> None:
    topics = ("my doctor", "my own doctor", "doctor", "own own own own")
    text, expected, at = gap.join(words), [], 0
    starts = []
    for word in words:
        starts.append(at)
        at += len(word) + len(gap)
    for topic in topics:
        wanted = topic.split()
        for first in range(len(words) - len(wanted) + 1):
            last = first + len(wanted) - 1
            if words[first : last + 1] == wanted:
                expected.append((starts[first], starts[last] + len(words[last])))
    assert sorted((one.start, one.end) for one in find_topics(Scan(text), topics)) == sorted(expected)


def test_the_work_grows_with_the_text_and_not_with_the_topics_that_begin_alike() -> None:
    def work(topics: int) -> int:
        phrases = tuple(f"my {'a' * (number % 90 + 1)} {'b' * (number // 90 + 1)}" for number in range(topics))
        scan = Scan("my a c my doctor " * 50)
        find_topics(scan, phrases)  # the table of these is made once
        counted = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal counted
            counted += 1

        sys.setprofile(count)
        try:
            find_topics(scan, phrases)
        finally:
            sys.setprofile(None)
        return counted

    assert work(500) <= work(5) + 10
