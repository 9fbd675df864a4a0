"""Numbers that a state gives a person: social security, tax, identity, health, passports and driving licences.

`national_table.py` says which. United States social security numbers have no check digit; what was never given out is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module

from .budget import Budget
from .finding import Finding
from .national_table import DIGITS, LETTERED, Digits, Lettered
from .scan import Scan, glued_after, glued_before

BEFORE, AFTER = 48, 24  # characters around a number in which a word counts
Groups = tuple[int, ...]  # how many digits each has

_GROUP = re.compile(r"\d+")
_SSN = re.compile(r"\d{3}([ .-])\d\d\1\d{4}")
_SSN_WORDS = re.compile(r"(?i)\bssn\b|social security")
_SAMPLES = ("078051120", "123456789", "219099999", "457555462")  # printed on specimens, and used by thousands
# A word, up to a few others, and a number with digits in it: no check, so only what is announced.
_ANNOUNCED = ("passport", "driver", "driving lic")
_DOCUMENT = re.compile(
    r"(?:passport|driver'?s?'?s? licen[cs]e|driving licen[cs]e)[^\d\n]{0,24}?(?<![A-Za-z0-9])([A-Za-z]{0,3}\d[\dA-Za-z-]{4,18})(?![\w-])",
    re.IGNORECASE,
)
_LIKE_A_DATE = re.compile(r"(?:19|20)\d\d([-/.]?)\d{1,2}\1\d{1,2}\Z|\d{1,2}([-/.])\d{1,2}\2(?:19|20)?\d\d\Z")


def find_ssns(scan: Scan) -> list[Finding]:
    """Nine digits as 3-2-4 with one kind of separator; without separators only after "SSN"."""
    text = scan.text
    found = []
    for chain in scan.chains:
        if chain.end() - chain.start() < 9:
            continue
        groups = [match.span() for match in _GROUP.finditer(text, *chain.span())]
        for at, (start, end) in enumerate(groups):
            if end - start == 3 and at + 2 < len(groups):
                end = groups[at + 2][1]
                written = _SSN.fullmatch(text, start, end) is not None
            else:
                written = end - start == 9 and _SSN_WORDS.search(text, max(0, start - BEFORE), start) is not None
            if written and _was_given_out(text[start:end]) and not (glued_before(text, start) or glued_after(text, end)):
                found.append(scan.finding("ssn", start, end))
    return found


def _was_given_out(written: str) -> bool:
    number = "".join(_GROUP.findall(written))
    area, group, serial = number[:3], number[3:5], number[5:]
    return (
        area not in ("000", "666")
        and area < "900"
        and group != "00"
        and serial != "0000"
        and len(set(number)) > 1
        and number not in _SAMPLES
    )


def find_national_ids(scan: Scan, regions: tuple[str, ...]) -> list[Finding]:
    """Numbers of the table for these regions, and passports and driving licences that are announced."""
    budget, said = Budget(), Said(scan)
    spans = [*_digits_in(scan, _by_groups(regions), said, budget), *_lettered_in(scan, regions, said, budget), *_documents_in(scan)]
    return [scan.finding("national_id", *span) for span in spans]


class Said:
    """Whether a word stands near a number. Most words are nowhere in a text, which is found out once."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._somewhere: dict[str, bool] = {}

    def near(self, words: str, start: int, end: int) -> bool:
        if words not in self._somewhere:
            self._somewhere[words] = any(word.removesuffix(r"\w*") in self._scan.lower for word in words.split("|"))
        if not self._somewhere[words]:
            return False
        text, pattern = self._scan.text, _words(words)
        return pattern.search(text, max(0, start - BEFORE), start) is not None or pattern.search(text, end, end + AFTER) is not None


def _digits_in(scan: Scan, table: dict[int, list[tuple[Groups, Digits]]], said: Said, budget: Budget) -> Iterator[tuple[int, int]]:
    text = scan.text
    for chain in scan.chains:
        if chain.end() - chain.start() < 8:
            continue
        spans = [match.span() for match in _GROUP.finditer(text, *chain.span())]
        lengths = tuple(end - start for start, end in spans)
        for at, (start, _) in enumerate(spans):
            for groups, number in table.get(lengths[at], ()):
                fraction = len(groups) == 1 and at > 0 and text[start - 1] == "."
                if lengths[at : at + len(groups)] == groups and not fraction:
                    end = spans[at + len(groups) - 1][1]
                    if _stands(number, groups, text, start, end, said) and not (glued_before(text, start) or glued_after(text, end)):
                        budget.spend()
                        if _valid(number.module)("".join(_GROUP.findall(text, start, end))):
                            yield start, end
                            break


def _stands(number: Digits, groups: Groups, text: str, start: int, end: int, said: Said) -> bool:
    """Whether the number may be looked at: its separators say what it is, or a word does."""
    if groups in number.alone and all(c.isdigit() or c in number.between for c in text[start:end]):
        return True
    return bool(number.words) and said.near(number.words, start, end)


def _lettered_in(scan: Scan, regions: tuple[str, ...], said: Said, budget: Budget) -> Iterator[tuple[int, int]]:
    """Looks around each run of digits that touches a capital letter, at most one mark away."""
    table, shapes = _shapes(regions)
    text = f"{scan.text}  "
    done = 0
    for chain in scan.chains:
        start, end = chain.span()
        before, after = text[start - 1] if start else " ", text[end]
        if before in " -" and start > 1:
            before = text[start - 2]
        if after in " -":
            after = text[end + 1]
        if start < done or not ("A" <= before <= "Z" or "A" <= after <= "Z"):
            continue
        match = shapes.search(text, max(done, start - 8), end + 12)
        if match and match.start() <= start:
            number = table[int((match.lastgroup or "_0")[1:])]
            if not number.words or said.near(number.words, *match.span()):
                budget.spend()
                if not number.module or _valid(number.module)(match[0]):
                    yield match.span()
                    done = match.end()


def _documents_in(scan: Scan) -> Iterator[tuple[int, int]]:
    for word in _ANNOUNCED:
        at = scan.lower.find(word)
        while at >= 0:
            match = _DOCUMENT.match(scan.text, at)
            if match and not _LIKE_A_DATE.match(match[1]) and sum(map(str.isdigit, match[1])) >= 5:
                yield match.span(1)
            at = scan.lower.find(word, at + 1)


@lru_cache(maxsize=16)
def _by_groups(regions: tuple[str, ...]) -> dict[int, list[tuple[Groups, Digits]]]:
    """The numbers of these regions by the length of their first group."""
    table: dict[int, list[tuple[Groups, Digits]]] = {}
    for number in DIGITS:
        if number.region in regions:
            for groups in dict.fromkeys((*number.alone, *number.said)):
                table.setdefault(groups[0], []).append((groups, number))
    return table


@lru_cache(maxsize=16)
def _shapes(regions: tuple[str, ...]) -> tuple[tuple[Lettered, ...], re.Pattern[str]]:
    """The numbers of these regions, and one pattern for all: its group `_3` is the fourth number."""
    table = tuple(one for one in LETTERED if one.region in regions)
    shapes = "|".join(f"(?P<_{at}>{one.shape})" for at, one in enumerate(table))
    return table, re.compile(rf"(?<!\w)(?:{shapes or '(?!)'})(?!\w)", re.ASCII)


@cache
def _words(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)\b(?:{words})\b")


@cache
def _valid(module: str) -> Callable[[str], bool]:
    valid: Callable[[str], bool] = import_module(f"stdnum.{module}").is_valid
    return valid
