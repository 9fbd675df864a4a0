"""Words and phrases that make a conversation private, whatever it says about them."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in order; digits and marks only separate them."""
    return _WORD.findall(text.lower())


def count_topics(words: list[str], topics: frozenset[str]) -> int:
    """How many of `topics` (words, or phrases of several) occur."""
    known = set(words)
    found = len(known & topics)
    phrases = [topic for topic in topics if " " in topic and topic.split(" ", 1)[0] in known]
    if phrases:
        joined = f" {' '.join(words)} "
        found += sum(f" {phrase} " in joined for phrase in phrases)
    return found
