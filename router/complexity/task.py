"""What kind of work a prompt asks for: one coarse word, by rules that a reader can check."""

from __future__ import annotations

from typing import Literal, get_args

from .lexicon import CODING, MATHS
from .reading import Reading

Task = Literal["code", "maths", "translate", "summarise", "classify", "extract", "write", "explain", "question", "other"]
TASKS: tuple[Task, ...] = get_args(Task)

_DIGITS = bytes(code if chr(code) in "0123456789" else 32 for code in range(256))
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


def task_of(reading: Reading) -> Task:
    """Program text, or words of programming, is code; formulas, numbers or verbs of mathematics are maths; else a verb says it."""
    ends = reading.task
    words = ends.distinct
    if has_code(reading) or len(words & CODING) >= 2:
        return "code"
    formulas, maths = ends.formulas, len(words & MATHS)
    if formulas >= 2 or maths >= 3 or (maths + formulas and _numbers(ends.seen) >= 2):
        return "maths"
    if words & _MATHS_VERBS and (formulas or words & MATHS - _MATHS_VERBS or _numbers(ends.seen) >= 2):
        return "maths"
    for task, verbs in _KINDS:
        if not words.isdisjoint(verbs):
            return task
    return "question" if "?" in ends.seen else "other"


def has_code(reading: Reading) -> bool:
    """Whether there is program text in it, not only talk about programs."""
    return reading.task.statements >= 2


def _numbers(text: str) -> int:
    """Runs of digits."""
    return len(text.encode("utf-8", "surrogatepass").translate(_DIGITS).split())
