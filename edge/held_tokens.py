"""A runtime that knows which tokens it holds, so that a later prompt can start from what it shares with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.errors import NoHiddenStates
from ..shared_protocol.runtime import EdgeRuntime, HiddenStates, MemoryReport


class HeldTokens(EdgeRuntime):
    """Passes every call on and keeps `ids`, the tokens in the KV cache; len(ids) == length, always."""

    def __init__(self, runtime: EdgeRuntime) -> None:
        self._runtime = runtime
        self.card = runtime.card
        self.context = runtime.context
        self.kernel_id = runtime.kernel_id
        runtime.truncate(0)
        self.ids: list[int] = []

    @property
    def can_truncate(self) -> bool:  # type: ignore[override]
        return self._runtime.can_truncate

    def keep_common_prefix(self, ids: Sequence[int]) -> int:
        """Forget what differs from `ids`; return how many of them are held. The last of `ids` never is: its logits are wanted."""
        same = 0
        for mine, theirs in zip(self.ids, ids[:-1], strict=False):
            if mine != theirs:
                break
            same += 1
        if same < len(self.ids) and not self.can_truncate:
            same = 0
        self.truncate(same)
        return same

    def extend(self, ids: Sequence[int], rows: int = 1) -> NDArray[np.float32]:
        logits = self._runtime.extend(ids, rows)
        self.ids.extend(ids)
        return logits

    @property
    def hidden_size(self) -> int | None:
        """Numbers of a hidden state; None where the runtime gives none."""
        return self._runtime.hidden_size if isinstance(self._runtime, HiddenStates) else None

    def extend_with_hidden(self, ids: Sequence[int], rows: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Raises NoHiddenStates where the runtime gives none."""
        if not isinstance(self._runtime, HiddenStates):
            raise NoHiddenStates(self.card.name)
        logits, hidden = self._runtime.extend_with_hidden(ids, rows)
        self.ids.extend(ids)
        return logits, hidden

    def truncate(self, length: int) -> None:
        self._runtime.truncate(length)
        del self.ids[length:]

    @property
    def length(self) -> int:
        assert self._runtime.length == len(self.ids)
        return len(self.ids)

    def cost_curve(self, k_max: int) -> NDArray[np.float64]:
        return self._runtime.cost_curve(k_max)

    def memory(self) -> MemoryReport:
        return self._runtime.memory()

    def cancel(self) -> None:
        self._runtime.cancel()

    def close(self) -> None:
        self._runtime.close()
