"""What one user turn looks like: counts that a reader could check by hand. Bounded work, no model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..detect.fold import beyond_ascii
from ..detect.scan import words_of
from .lexicon import CODING, COMMON, CONSTRAINTS, DEMANDING, MATHS, THINKING

HEAD, TAIL = 2_000, 500  # characters of a turn that are looked at
CHARACTERS_PER_WORD = 6

_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")  # scripts that write no spaces between words
CHARACTERS_PER_UNSPACED_WORD = 2
_NUMBER = re.compile(rb"[0-9]+(?:[.,][0-9]+)*")
_NUMERIC = bytes(code if chr(code) in "0123456789.," else 32 for code in range(256))
_ITEM = re.compile(r"\n\s{0,8}(?:[0-9]{1,2}[.)]|[-*•])\s")
STATEMENTS = ("```", "def ", "class ", "import ", "#include", "for (", "public ", "SELECT ", "return ", ";\n", "{\n", "}\n", "()", "=> ")
FORMULAS = ("=", "^", "\\", "√", "∑", "∫", "≤", "≥", "≠", "±", "×", "÷")


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


def turn_of(text: str) -> Turn:
    """Count; only the first HEAD and the last TAIL characters are looked at, where instructions stand."""
    seen = text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"
    words = words_of(seen)
    distinct = set(words)
    statements = sum(map(seen.count, STATEMENTS))
    return Turn(
        words=_length(text, seen, words),
        demanding=len(distinct & DEMANDING),
        thinking=len(distinct & THINKING),
        constraints=sum(map(CONSTRAINTS.__contains__, words)),
        coding=len(distinct & CODING),
        statements=statements,
        maths=len(distinct & MATHS),
        numbers=_numbers(seen),
        formulas=sum(map(seen.count, FORMULAS)),
        items=sum(1 for _ in _ITEM.finditer(f"\n{seen}")) if "\n" in seen else 0,
        foreign=_foreign(seen, words, statements),
    )


def _numbers(text: str) -> int:
    digits = text.encode("ascii", "replace").translate(_NUMERIC)  # first without all else: most of a text is none
    return len(_NUMBER.findall(b" ".join(digits.split())))


def _length(text: str, seen: str, words: list[str]) -> int:
    """In words; of what is not looked at, from the characters."""
    if seen.isascii():
        return len(words) if seen is text else len(text) // CHARACTERS_PER_WORD
    unspaced = len(_UNSPACED.findall(beyond_ascii(seen))) / len(seen)
    if seen is text:
        return len(words) + int(unspaced * len(text)) // CHARACTERS_PER_UNSPACED_WORD
    return int(len(text) * (unspaced / CHARACTERS_PER_UNSPACED_WORD + (1 - unspaced) / CHARACTERS_PER_WORD))


def _foreign(text: str, words: list[str], statements: int) -> float:
    """The share of letters beyond ASCII, tripled, or 1 for a sentence without the common words of English; program text is in none."""
    if len(words) >= 8 and not statements and sum(map(COMMON.__contains__, words)) < 0.08 * len(words):
        return 1.0
    if text.isascii():
        return 0.0
    foreign = sum(map(str.isalpha, beyond_ascii(text)))
    return min(1.0, 3 * foreign / max(1, sum(map(len, words))))
