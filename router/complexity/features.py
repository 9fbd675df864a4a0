"""What one user turn looks like: counts that a reader could check by hand. Bounded work, no model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .lexicon import CODING, COMMON, CONSTRAINTS, DEMANDING, MATHS, THINKING
from .reading import Ends, Reading

CHARACTERS_PER_WORD = 6

_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # scripts that write no spaces between words
CHARACTERS_PER_UNSPACED_WORD = 2
_NUMBER = re.compile(rb"[0-9]+(?:[.,][0-9]+)*")
_NUMERIC = bytes(code if chr(code) in "0123456789.," else 32 for code in range(256))
_ITEM = re.compile(r"\n\s{0,8}(?:[0-9]{1,2}[.)]|[-*•])\s")


@dataclass(frozen=True, slots=True)
class Turn:
    """Counts over one turn; of a long one only `words` covers all, from its length."""

    words: int
    demanding: int  # distinct words of lexicon.DEMANDING
    thinking: int
    constraints: int  # words, repeated ones too
    coding: int  # distinct words
    statements: int  # marks of program text
    maths: int  # distinct words
    numbers: int
    formulas: int  # marks of formulas
    items: int  # items of lists
    foreign: float  # 0..1, how far it is not English


def turn_of(reading: Reading) -> Turn:
    """Count; only the beginning and the end are looked at, where instructions stand."""
    ends = reading.features
    seen, words, distinct = ends.seen, ends.words, ends.distinct
    return Turn(
        words=_length(reading.text, ends),
        demanding=len(distinct & DEMANDING),
        thinking=len(distinct & THINKING),
        constraints=sum(map(CONSTRAINTS.__contains__, words)) if distinct & CONSTRAINTS else 0,
        coding=len(distinct & CODING),
        statements=ends.statements,
        maths=len(distinct & MATHS),
        numbers=_numbers(seen),
        formulas=ends.formulas,
        items=sum(1 for _ in _ITEM.finditer(f"\n{seen}")) if "\n" in seen else 0,
        foreign=_foreign(ends),
    )


def _numbers(text: str) -> int:
    digits = text.encode("utf-8", "surrogatepass").translate(_NUMERIC)  # first without all else: most of a text is none
    return len(_NUMBER.findall(b" ".join(digits.split())))


def _length(text: str, ends: Ends) -> int:
    """In words; of what is not looked at, from the characters."""
    seen, words = ends.seen, ends.words
    if not ends.beyond:
        return len(words) if seen is text else len(text) // CHARACTERS_PER_WORD
    unspaced = len(_UNSPACED.findall(ends.beyond)) / len(seen)
    if seen is text:
        return len(words) + int(unspaced * len(text)) // CHARACTERS_PER_UNSPACED_WORD
    return int(len(text) * (unspaced / CHARACTERS_PER_UNSPACED_WORD + (1 - unspaced) / CHARACTERS_PER_WORD))


def _foreign(ends: Ends) -> float:
    """The share of letters beyond ASCII, tripled, or 1 for a sentence without the common words of English; program text is in none."""
    words = ends.words
    if len(words) >= 8 and not ends.statements and sum(map(COMMON.__contains__, words)) < 0.08 * len(words):
        return 1.0
    if not ends.beyond:
        return 0.0
    foreign = sum(map(str.isalpha, ends.beyond))
    return min(1.0, 3 * foreign / max(1, sum(map(len, words))))
