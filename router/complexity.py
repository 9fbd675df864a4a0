"""How much a conversation asks of a model: a score from 0 to below 1, by rules, the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .features import Turn


def complexity(turns: Sequence[Turn]) -> float:
    """The hardest turn's score: a hard task followed by "continue" stays hard. 0.0 without turns."""
    return max(map(score_of, turns), default=0.0)


def score_of(turn: Turn) -> float:
    """A saturating sum of what makes a turn hard."""
    demand = (
        0.22 * turn.hard
        + 0.06 * min(turn.steps, 8)
        + 0.12 * min(turn.coding, 4)
        + 0.05 * min(turn.code, 10)
        + 0.02 * min(turn.maths, 20)
        + 0.04 * min(turn.items, 10)
        + 0.10 * math.log1p(turn.characters / 200)
    )
    return 1 - math.exp(-demand)
