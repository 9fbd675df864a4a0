"""A model small enough to reason about: its logits are a hash of the whole prefix, so any wrong token in the cache shows at once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from hybrid.shared_protocol.errors import Cancelled, ContextOverflow
from hybrid.shared_protocol.model_card import ModelCard
from hybrid.shared_protocol.runtime import EdgeRuntime, MemoryReport
from numpy.typing import NDArray

VOCAB = 40
CARD = ModelCard("toy", "toy", "F32", 0, 64, VOCAB, "toy-fingerprint", "toy-hash", 0, "Apache-2.0", vocabulary="toy-vocabulary")


def toy_logits(prefix: Sequence[int], model: int = 0, vocab: int = VOCAB) -> NDArray[np.float32]:
    """Logits after `prefix`, float32 [vocab]; another `model` is another function."""
    key = hashlib.sha256(repr((model, list(prefix))).encode()).digest()
    return np.random.default_rng(int.from_bytes(key[:8], "little")).normal(0, 3, vocab).astype(np.float32)


class ToyRuntime(EdgeRuntime):
    """Holds the ids themselves; `fed` counts the tokens computed."""

    def __init__(self, context: int = 64, model: int = 0) -> None:
        self.card = CARD
        self.context = context
        self.kernel_id = "toy"
        self.can_truncate = True
        self.held: list[int] = []
        self.fed = 0
        self.cancelled = False
        self._model = model

    @property
    def length(self) -> int:
        return len(self.held)

    def extend(self, ids: Sequence[int], rows: int = 1) -> NDArray[np.float32]:
        if self.cancelled:
            self.cancelled = False
            raise Cancelled("cancelled")
        if len(self.held) + len(ids) > self.context:
            raise ContextOverflow(asked=len(self.held) + len(ids), limit=self.context)
        logits = []
        for token_id in ids:
            self.held.append(token_id)
            logits.append(toy_logits(self.held, self._model))
        self.fed += len(ids)
        return np.array(logits[len(ids) - rows :], dtype=np.float32).reshape(rows, VOCAB)

    def truncate(self, length: int) -> None:
        assert 0 <= length <= len(self.held)
        del self.held[length:]

    def cost_curve(self, k_max: int) -> NDArray[np.float64]:
        return np.arange(k_max + 1, dtype=np.float64)

    def memory(self) -> MemoryReport:
        return MemoryReport(0, 0, 0, 0)

    def cancel(self) -> None:
        self.cancelled = True

    def close(self) -> None:
        pass
