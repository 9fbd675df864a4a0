"""Wrong drafts on purpose: with one model on both sides acceptance is 1, and rejection must be exercised all the same."""

from __future__ import annotations

import random


class Corruptor:
    """Replaces a drafted id by another one with probability `p`. Seeded: the same calls give the same ids."""

    def __init__(self, p: float, seed: int, vocab: int) -> None:
        assert 0 <= p <= 1
        assert vocab >= 2
        self._p = p
        self._vocab = vocab
        self._random = random.Random(seed)

    def __call__(self, position: int, token_id: int) -> int:
        if self._random.random() >= self._p:
            return token_id
        return (token_id + 1 + self._random.randrange(self._vocab - 1)) % self._vocab
