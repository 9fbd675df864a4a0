"""Words and phrases that make a conversation private, whatever it says about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from .finding import Finding
from .scan import Scan, words_of

# The phrases by their first word: how many words they have, and which those are.
Table = Mapping[str, Mapping[int, frozenset[tuple[str, ...]]]]


def find_topics(scan: Scan, topics: tuple[str, ...]) -> list[Finding]:
    """Where `topics` (words, or phrases of several) occur, whatever their case and the marks between their words. Linear in the text,
    however many topics begin alike."""
    table = _table(topics)
    if table.keys().isdisjoint(scan.words):
        return []
    return [scan.finding("topic", *span) for span in _places(scan.letters, scan.words, _among(scan.words, table))]


def _among(words: list[str], table: Table) -> Iterator[tuple[int, int]]:
    """The number of the first and of the last word of each topic."""
    for at, word in enumerate(words):
        if word in table:
            for count, phrases in table[word].items():
                if tuple(words[at : at + count]) in phrases:
                    yield at, at + count - 1


def _places(letters: str, words: list[str], found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """From where to where in `letters` the words of these numbers stand, of all its `words`. The numbers ascend: one way through both."""
    padded = f" {letters} "
    at, place = 0, 0
    for first, last in found:
        word = f" {words[first]} "
        for _ in range(words[at:first].count(words[first])):
            place = padded.index(word, place) + len(word) - 1
        place, at = padded.index(word, place), first
        end = place + 1
        for other in words[first : last + 1]:
            end = padded.index(other, end) + len(other)
        yield place, end - 1


@lru_cache(maxsize=8)
def _table(topics: tuple[str, ...]) -> Table:
    table: dict[str, dict[int, set[tuple[str, ...]]]] = {}
    for topic in topics:
        if words := tuple(words_of(topic)):
            table.setdefault(words[0], {}).setdefault(len(words), set()).add(words)
    return {word: {count: frozenset(phrases) for count, phrases in of.items()} for word, of in table.items()}
