"""Words and phrases that make a conversation private, whatever it says about them."""

from __future__ import annotations

from functools import lru_cache

from .scan import Scan, words_of


def count_topics(scan: Scan, topics: tuple[str, ...]) -> int:
    """How many of `topics` (words, or phrases of several) occur, whatever their case and the marks between their words."""
    singles, phrases = _prepare(topics)
    known = set(scan.words)
    found = len(known & singles)
    near = [phrase for phrase in phrases if phrase[0] in known]
    if near:
        joined = f" {' '.join(scan.words)} "
        found += sum(f" {' '.join(phrase)} " in joined for phrase in near)
    return found


@lru_cache(maxsize=8)
def _prepare(topics: tuple[str, ...]) -> tuple[frozenset[str], tuple[tuple[str, ...], ...]]:
    """Single words, and phrases as their words."""
    split = [tuple(words_of(topic)) for topic in topics]
    return frozenset(words[0] for words in split if len(words) == 1), tuple(words for words in split if len(words) > 1)
