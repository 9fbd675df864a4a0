"""Words and phrases that make a conversation private, whatever it says about them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .finding import Finding
from .scan import Scan, words_of


def find_topics(scan: Scan, topics: tuple[str, ...]) -> list[Finding]:
    """Where `topics` (words, or phrases of several) occur, whatever their case and the marks between their words."""
    singles, phrases = _prepare(topics)
    known = set(scan.words)
    present: list[tuple[str, ...]] = [(word,) for word in sorted(known & singles)]
    near = [phrase for phrase in phrases if phrase[0] in known]
    if near:
        joined = f" {' '.join(scan.words)} "
        present += [phrase for phrase in near if f" {' '.join(phrase)} " in joined]
    return [scan.finding("topic", *span) for phrase in present for span in _places(scan.lower, phrase)]


def _places(lower: str, phrase: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    pattern = _pattern(phrase)
    at = lower.find(phrase[0])
    while at >= 0:
        if match := pattern.match(lower, at):
            yield match.span()
        at = lower.find(phrase[0], at + 1)


@lru_cache(maxsize=256)
def _pattern(phrase: tuple[str, ...]) -> re.Pattern[str]:
    """The phrase where it stands; what counts as a letter is what `words_of` counts as one."""
    words = r"[^a-z\x80-\U0010ffff]+".join(map(re.escape, phrase))
    return re.compile(rf"(?<![a-z\x80-\U0010ffff]){words}(?![a-z\x80-\U0010ffff])")


@lru_cache(maxsize=8)
def _prepare(topics: tuple[str, ...]) -> tuple[frozenset[str], tuple[tuple[str, ...], ...]]:
    """Single words, and phrases as their words."""
    split = [tuple(words_of(topic)) for topic in topics]
    return frozenset(words[0] for words in split if len(words) == 1), tuple(words for words in split if len(words) > 1)
