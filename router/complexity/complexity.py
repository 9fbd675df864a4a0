"""How much a conversation asks of a model: a score from 0 to below 1, by rules, the same on every machine.

Each part is a saturating count, 1 - exp(-count / scale), times the part's weight; the parts are joined as independent reasons
(1 - score is the product of 1 - part), so that one strong reason is enough, more reasons add, and no score reaches 1.

The scales and weights were tuned by hand on two public sets of routing outcomes (RouteLLM's GSM8K: Mixtral-8x7B or GPT-4, and
LLMRouter's mixed tasks: 8B or 51B). Area under the routing curve (APGR, random is .5): .62 and .62, prompt length alone .60 and
.61. The rules know nothing of the models at hand: the policy's bands say what a score means.
"""

from __future__ import annotations

import math

import msgspec

from ..request import RouteRequest
from .features import Turn, turn_of
from .reading import Said


class Parts(msgspec.Struct, frozen=True):
    """What each reason contributes, 0 .. below 1."""

    size: float = 0.0
    reasoning: float = 0.0
    constraints: float = 0.0
    code: float = 0.0
    maths: float = 0.0
    language: float = 0.0
    history: float = 0.0  # length of the conversation around its longest turn
    tools: float = 0.0

    @property
    def score(self) -> float:
        parts: tuple[float, ...] = msgspec.structs.astuple(self)
        return 1 - math.prod(1 - part for part in parts)


def complexity(request: RouteRequest) -> Parts:
    """The parts of the hardest user turn, and of the conversation around it: a hard task followed by "continue" stays hard.

    A turn's length is that of its words, not of its tokens: a template adds dozens of those to a short prompt, and the dry run, which
    may have no tokenizer, is to say what serving says.
    """
    return complexity_of(request, Said(request))


def complexity_of(request: RouteRequest, said: Said) -> Parts:
    """The same, of what has been read of the request already."""
    everything = sum(len(message.content or "") for message in request.messages)
    hardest = max((parts_of(turn_of(turn)) for turn in said.turns), key=_score, default=Parts())
    around = everything - max((len(turn.text) for turn in said.turns), default=0)
    return msgspec.structs.replace(
        hardest,
        history=0.3 * _saturate(around, 12_000),
        tools=0.3 * _saturate(len(request.tools), 2),
    )


def parts_of(turn: Turn) -> Parts:
    return Parts(
        size=0.55 * _saturate(turn.words, 150),
        reasoning=0.75 * _saturate(2.4 * turn.demanding + turn.thinking, 2.6),
        constraints=0.50 * _saturate(turn.constraints + 0.8 * turn.items, 9),
        code=0.60 * _saturate(0.8 * turn.coding + 0.6 * turn.statements, 2.5),
        maths=0.40 * _saturate(turn.maths + 0.35 * max(0, turn.numbers - 1) + 0.7 * turn.formulas, 6),
        language=0.40 * turn.foreign,
    )


def _score(parts: Parts) -> float:
    return parts.score


def _saturate(count: float, scale: float) -> float:
    return 1 - math.exp(-count / scale)
