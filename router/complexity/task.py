"""What kind of work a prompt asks for: one coarse word, by rules that a reader can check."""

from __future__ import annotations

import re
from typing import Literal, get_args

from ..detect.scan import words_of
from ..request import RouteRequest
from .features import FORMULAS, STATEMENTS
from .lexicon import CODING, MATHS

Task = Literal["code", "maths", "translate", "summarise", "classify", "extract", "write", "explain", "question", "other"]
TASKS: tuple[Task, ...] = get_args(Task)
HEAD, TAIL = 1_000, 500  # characters of a turn that are looked at
MIN_WORDS = 4  # a shorter turn, such as "go on, please", belongs to the task before it

_NUMBER = re.compile(r"[0-9]+")
# in this order: the first kind of which a word occurs
_VERBS: dict[Task, str] = {
    "translate": "translate translation translated übersetze übersetzen traduis traduire traduce",
    "summarise": "summarise summarize summary tldr shorten condense recap abstract",
    "classify": "classify categorise categorize label sentiment category",
    "extract": "extract list find identify retrieve",
    "write": "write compose draft rewrite rephrase poem story essay letter email blog imagine",
    "explain": "explain why describe discuss compare contrast analyse analyze reason reasons",
    "question": "what who when where which how is are does can",
}
# what is done in mathematics: with one more word of it, a formula or two numbers it is plain what is asked
_MATHS_VERBS = frozenset(
    ("calculate", "compute", "derive", "differentiate", "factorise", "factorize", "integrate", "prove", "simplify", "solve")
)
_KINDS = [(task, frozenset(verbs.split())) for task, verbs in _VERBS.items()]


def last_task_text(request: RouteRequest) -> str:
    """The last turn of the user that says what to do: of at least MIN_WORDS words, else the longest."""
    turns = [message.content or "" for message in request.messages if message.role == "user"]
    for text in reversed(turns):
        if len(text.split(None, MIN_WORDS)) >= MIN_WORDS:
            return text
    return max(turns, key=len, default="")


def task_of(text: str) -> Task:
    """Program text, or words of programming, is code; formulas, numbers or verbs of mathematics are maths; else a verb says it."""
    seen = _ends(text)
    words = set(words_of(seen))
    if has_code(text) or len(words & CODING) >= 2:
        return "code"
    formulas, maths = sum(map(seen.count, FORMULAS)), len(words & MATHS)
    numbers = len(_NUMBER.findall(seen))
    if formulas >= 2 or maths >= 3 or (maths + formulas and numbers >= 2):
        return "maths"
    if words & _MATHS_VERBS and (numbers >= 2 or formulas or words & MATHS - _MATHS_VERBS):
        return "maths"
    for task, verbs in _KINDS:
        if not words.isdisjoint(verbs):
            return task
    return "question" if "?" in seen else "other"


def has_code(text: str) -> bool:
    """Whether there is program text in it, not only talk about programs."""
    seen = _ends(text)
    return sum(map(seen.count, STATEMENTS)) >= 2


def _ends(text: str) -> str:
    """The beginning and the end, where instructions stand."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"
