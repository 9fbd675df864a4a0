"""What a prompt looks like: some two dozen numbers, each with words for when it is high and when it is low.

Bounded work: all of a prompt counts for its length, and only its head and its tail, where instructions stand, for the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from ..complexity.lexicon import COMMON
from ..request import RouteRequest

LONG = 7  # letters, above which a word is long
TURNS = 3  # looked at alone
HEAD, TAIL = 1_500, 500  # characters


class Trait(NamedTuple):
    name: str
    high: str
    low: str


TRAITS = (
    Trait("length", "a long problem statement", "a short prompt"),
    Trait("words", "many words", "few words"),
    Trait("numbers", "many numbers", "hardly a number"),
    Trait("digits", "many digits", "hardly a digit"),
    Trait("biggest", "large numbers", "no large number"),
    Trait("fractions", "fractions or decimals", "no fractions or decimals"),
    Trait("percent", "percentages", "no percentages"),
    Trait("word_length", "long words on average", "short words on average"),
    Trait("long_words", "many long words", "hardly a long word"),
    Trait("variety", "ever new words", "words that repeat"),
    Trait("common", "much everyday English", "little everyday English"),
    Trait("foreign", "letters beyond ASCII", "plain ASCII letters"),
    Trait("capitals", "many capitalised words", "few capitalised words"),
    Trait("starts_capital", "a capital at the start", "no capital at the start"),
    Trait("lines", "many lines", "a single line"),
    Trait("sentences", "many sentences", "hardly a full sentence"),
    Trait("commas", "many commas", "few commas"),
    Trait("signs", "many signs among the letters", "few signs among the letters"),
    Trait("questions", "several questions", "no question mark"),
    Trait("ends_question", "a question at the end", "no question at the end"),
    Trait("quotes", "quotations", "no quotations"),
    Trait("formulas", "formulas", "no formulas"),
    Trait("code", "program text", "no program text"),
    Trait("options", "a list of items or options", "no list"),
)

_FIRST = itemgetter(0)
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_DIGITS = re.compile(r"[0-9]{1,12}")
_PART = re.compile(r"[0-9][./][0-9]")
_END = re.compile(r"[.!?](?=\s|$)")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CODE = ("```", "def ", "class ", "import ", "return ", "self.", "==", "[]", "()", ";\n", "{\n")
_NO_SIGNS = bytes(code for code in range(128) if chr(code).isalnum() or chr(code).isspace())
_ITEM = re.compile(r"(?m)^\s{0,8}(?:[0-9]{1,2}[.)]|\(?[A-Ha-h][.)]|[-*•])\s")


def said(request: RouteRequest) -> list[str]:
    """What a learned router looks at: all that the user said, as outcomes hold it; then the longest turns alone, if there are several.

    A hard task stays hard when all that follows is "continue".
    """
    turns = [message.content or "" for message in request.messages if message.role == "user"]
    return ["\n\n".join(turns), *(sorted(dict.fromkeys(turns), key=len, reverse=True)[:TURNS] if len(turns) > 1 else ())]


def bounded(text: str) -> str:
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def traits_of(text: str) -> list[float]:
    """One finite number per trait, for any text."""
    seen = bounded(text)
    words = _WORD.findall(seen)
    lower = list(map(str.lower, words))
    lengths = list(map(len, words))
    numbers = _NUMBER.findall(seen)
    share = 1 / max(1, len(words))
    letters = max(1, sum(lengths))
    stripped = seen.rstrip()
    return [
        math.log1p(len(text)),
        math.log1p(len(words) * len(text) / max(1, len(seen))),
        math.log1p(len(numbers)),
        math.log1p(sum(map(len, numbers))),
        math.log1p(max(map(int, _DIGITS.findall(seen)), default=0)),
        math.log1p(len(_PART.findall(seen))),
        math.log1p(seen.count("%")),
        letters * share if words else 0.0,
        sum(map(LONG.__lt__, lengths)) * share,
        len(set(lower)) * share**0.8,
        sum(map(COMMON.__contains__, lower)) * share,
        0.0 if seen.isascii() else sum(map(str.isalpha, _NOT_ASCII.findall(seen))) / letters,
        sum(map(str.isupper, map(_FIRST, words))) * share,
        float(seen[:1].isupper()),
        math.log1p(seen.count("\n")),
        math.log1p(len(_END.findall(seen))),
        math.log1p(seen.count(",")),
        len(seen.encode("ascii", "ignore").translate(None, _NO_SIGNS)) / max(1, len(seen)),
        float(min(5, seen.count("?"))),
        float(stripped.endswith("?")),
        math.log1p(seen.count('"') + seen.count("'")),
        math.log1p(seen.count("\\") + seen.count("$")),
        math.log1p(sum(map(seen.count, _CODE))),
        math.log1p(len(_ITEM.findall(seen))),
    ]


def strongest(parts: Sequence[float], values: Sequence[float], most: int) -> list[tuple[str, float]]:
    """The `most` largest of `parts` (by size), each in words; `values` says on which side of the average the trait lies."""
    ranked = sorted(range(len(parts)), key=lambda number: -abs(parts[number]))[:most]
    return [(TRAITS[n].high if values[n] >= 0 else TRAITS[n].low, parts[n]) for n in ranked if parts[n] != 0]
