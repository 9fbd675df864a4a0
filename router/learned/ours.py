"""The learned router as a scorer under test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...shared_protocol.errors import InvalidRequest
from ..evaluate.outcomes import Outcome
from .hashed import Floats
from .model import Model, raw_scores
from .train import train


class Ours:
    """Ranks by the predicted gain."""

    name = "ours"

    def __init__(self, model: Model | None = None) -> None:
        self._model = model

    @property
    def model(self) -> Model:
        if self._model is None:
            raise InvalidRequest("a router that has learned nothing cannot score", hint="call fit first")
        return self._model

    def fit(self, rows: Sequence[Outcome]) -> None:
        self._model = train(rows)

    def score(self, prompts: Sequence[str]) -> Floats:
        """The gain beside its mean in training: what differs from one set of training rows to another is no news of a prompt."""
        raw, _ = raw_scores(self.model, prompts)
        found: Floats = raw @ [-1, 1] - float(self.model.mean[1] - self.model.mean[0])
        return found

    def probabilities(self, prompts: Sequence[str]) -> Floats:
        """[n, 2]: calibrated chances that the weak and that the strong model answer right."""
        raw, _ = raw_scores(self.model, prompts)
        maps = (self.model.edge, self.model.cloud)
        return np.array([[one(score) for one, score in zip(maps, row, strict=True)] for row in raw.tolist()]).reshape(-1, 2)
