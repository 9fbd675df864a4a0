"""The complexity of `hybrid route`, as a scorer: the rules that need no training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..complexity.complexity import complexity
from ..request import RouteRequest
from .figure import Floats
from .outcomes import Outcome


class Rules:
    """Learns nothing. A conversation is seen as one turn of all the user has said, since a scorer sees no more."""

    name = "rules"

    def __init__(self) -> None:
        self._known: dict[str, float] = {}  # the same prompts are asked again and again, fold by fold

    def fit(self, rows: Sequence[Outcome]) -> None:
        pass

    def score(self, prompts: Sequence[str]) -> Floats:
        return np.array([self._score(prompt) for prompt in prompts], dtype=np.float64)

    def _score(self, prompt: str) -> float:
        if prompt not in self._known:
            self._known[prompt] = complexity(RouteRequest.of(prompt)).score
        return self._known[prompt]
