"""What a conversation looks like: counts that a reader could check by hand. Bounded work, no model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .detect_topics import words_of
from .request import RouteRequest

MAX_TURNS = 32  # user turns looked at: the first half and the last half of these
HEAD, TAIL = 3_000, 1_000  # characters of a turn looked at

_CODE = re.compile(r"```|(?m:^\s{0,8}(?:def |class |import |#include|for \(|public |SELECT ))|[;{}]\s*\n|\w\(\w*\)")
_MATHS = re.compile(r"[=+*/^<>√∑∫≤≥%$]|\\frac|\\sum|\d")
_LIST = re.compile(r"(?m)^\s{0,8}(?:\d{1,2}[.)]|[-*•])\s")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_HARD = _set("""
    analyse analyze architecture argue calculate compare compute contrast critique debug derive design determine differentiate
    evaluate explain implement integrate justify minimize maximize optimise optimize outline proof prove refactor simulate solve
    synthesize theorem algorithm complexity equation integral polynomial probability recursive asynchronous concurrency distributed
""")
_STEPS = _set("""
    step steps first second third then finally each every must should exactly least most ensure without only constraint constraints
""")
_CODING = _set("""
    code function python javascript typescript java c rust sql html css regex script program class api bash unit tests bug
""")


@dataclass(frozen=True, slots=True)
class Turn:
    """Counts over one user turn."""

    characters: int  # of the whole turn, also where only a part was looked at
    words: int
    hard: int  # distinct words that ask for reasoning
    steps: int  # words that state steps and constraints
    coding: int  # distinct words of programming
    code: int  # marks of code
    maths: int  # marks of mathematics, digits included
    items: int  # lines of lists
    questions: int


def turns_of(request: RouteRequest) -> list[Turn]:
    """The user's turns, oldest first; of a long conversation the first and the last ones."""
    texts = [message.content or "" for message in request.messages if message.role in ("user", "system", "developer")]
    if len(texts) > MAX_TURNS:
        texts = texts[: MAX_TURNS // 2] + texts[-MAX_TURNS // 2 :]
    return [turn_of(text) for text in texts]


def turn_of(text: str) -> Turn:
    seen = text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"
    words = words_of(seen)
    distinct = set(words)
    return Turn(
        characters=len(text),
        words=len(words),
        hard=len(distinct & _HARD),
        steps=sum(word in _STEPS for word in words),
        coding=len(distinct & _CODING),
        code=sum(1 for _ in _CODE.finditer(seen)),
        maths=sum(1 for _ in _MATHS.finditer(seen)),
        items=sum(1 for _ in _LIST.finditer(seen)),
        questions=seen.count("?"),
    )
