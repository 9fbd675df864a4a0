"""Two signals that cost more than reading an answer's own probabilities: asking the model again, and asking it whether it was right.

Both are opt-in: k more answers, or one more prompt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ASSESS = "Is the answer above correct? Reply with one word, True or False."


class Encodes(Protocol):
    def encode(self, text: str) -> list[int]: ...


def ask_whether_true(messages: Sequence[Mapping[str, object]], answer: str) -> list[Mapping[str, object]]:
    """The conversation with the model's answer and the question whether it is right."""
    return [*messages, {"role": "assistant", "content": answer}, {"role": "user", "content": ASSESS}]


def probability_of_true(logits: NDArray[np.float32], tokenizer: Encodes) -> float:
    """P(True) / (P(True) + P(False)) from the logits [vocab] of the reply's first token; 0.5 when both are impossible.

    Kadavath et al., "Language models (mostly) know what they know", arXiv 2207.05221. Yes and No count as well, with and without
    a space or a capital before: whichever the model likes to say.
    """
    import numpy as np

    masses = []
    for words in (("True", "Yes"), ("False", "No")):
        ids = sorted({tokenizer.encode(form)[0] for word in words for form in (word, word.lower(), f" {word}", f" {word.lower()}")})
        chosen = logits[ids].astype(np.float64)
        masses.append(float(np.exp(chosen - float(logits.max())).sum()))
    true, total = masses[0], masses[0] + masses[1]
    return true / total if total > 0 else 0.5


def agreement(answer: str, samples: Sequence[str]) -> float:
    """How far drawn answers say the same as `answer`, 0..1: the mean share of words in common (Dice, repeated words counted).

    1 when all are the same words in any order. Wang et al., arXiv 2203.11171, count equal answers; programs and sentences are
    hardly ever equal. Raises ValueError without a sample.
    """
    if not samples:
        raise ValueError("agreement needs at least one sample")
    return sum(_dice(_words(answer), _words(sample)) for sample in samples) / len(samples)


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+|[^\w\s]", text.casefold()))


def _dice(one: Counter[str], other: Counter[str]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0
