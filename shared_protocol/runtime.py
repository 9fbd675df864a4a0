"""The protocols through which the parts see each other, and the small facts that they exchange.

The router knows device and cloud only through `DeviceState` and `LinkState`; sessions know a model only through `EdgeRuntime`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .model_card import ModelCard


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes held by a runtime or an executor; `peak` is the most the process held since it was opened."""

    weights: int
    kv: int
    scratch: int
    peak: int


@dataclass(frozen=True, slots=True)
class DeviceState:
    """What the device can bear now. `None` means not known, which no rule may read as good or bad news."""

    memory_free_bytes: int | None = None
    battery: float | None = None  # 0..1, None on mains or unknown
    thermal_headroom: float | None = None  # 0 throttled .. 1 cool
    load: float | None = None  # processes that wait for a processor, per processor
    edge_available: bool = True  # a runtime is loaded and answers
    edge_context: int = 8192  # tokens


@dataclass(frozen=True, slots=True)
class LinkState:
    """The way to the cloud, as last probed. A probe carries nothing of a request."""

    reachable: bool = False
    rtt_s: float | None = None
    bandwidth_bytes_s: float | None = None
    cloud_context: int | None = None  # tokens


class EdgeRuntime(Protocol):
    """One sequence of one model on the device. Not thread-safe but for `cancel`; anything but `close` raises RuntimeClosed, an Unavailable,
    once it is closed."""

    card: ModelCard
    context: int  # tokens it can hold
    kernel_id: str  # what computes; bits are promised only between equal ones
    can_truncate: bool  # now; else it can only start anew, or restore a snapshot

    def extend(self, ids: Sequence[int], rows: int = 1) -> NDArray[np.float32]:
        """Feed `ids`; return the logits of the last `rows` of them, float32 [rows, vocab] (0 rows: an empty array).

        All of them are held afterwards or, when it raises, none. Raises ContextOverflow when the sequence would outgrow the context,
        InvalidRequest for ids or rows that do not exist, Cancelled after `cancel`.
        """
        ...

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` tokens. 0 can always be had, other lengths with `can_truncate`."""
        ...

    @property
    def length(self) -> int:
        """Tokens held in the KV cache."""
        ...

    def cost_curve(self, k_max: int) -> NDArray[np.float64]:
        """Milliseconds of a k-token `extend`, k = 0..k_max (entry 0 is 0.0), measured on first use."""
        ...

    def memory(self) -> MemoryReport: ...

    def cancel(self) -> None:
        """Make the running or next `extend` raise Cancelled; may be called from another thread."""
        ...

    def close(self) -> None:
        """Free what it holds; may be called again."""
        ...


@runtime_checkable
class Branching(Protocol):
    """Offered by runtimes that hold several sequences over the same weights."""

    def fork(self) -> Self:
        """Another runtime that holds what this one does; the two go on, and are closed, each on its own. Raises Unavailable when the
        runtime was not opened for that many."""
        ...

    def extend_branches(self, branches: Sequence[tuple[Self, Sequence[int]]], rows: int = 1) -> list[NDArray[np.float32]]:
        """Feed several forks together, in one batch where it fits: for each what its own `extend` would return. All or none."""
        ...


@runtime_checkable
class HiddenStates(Protocol):
    """Offered by runtimes that can hand out what the model's head reads."""

    hidden_size: int

    def extend_with_hidden(self, ids: Sequence[int], rows: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """As `extend`, with the same bits, and beside it the hidden states of the same rows after the final norm, float32
        [rows, hidden_size]. Those do not depend on how the sequence was cut into calls either."""
        ...


@runtime_checkable
class Snapshotting(Protocol):
    """Offered by runtimes that can hand out what they hold."""

    def snapshot(self) -> bytes:
        """What is held, in the runtime's own form."""
        ...

    def restore(self, snapshot: bytes) -> None:
        """Hold what the snapshot does. Raises InvalidRequest for one that is torn or of another model or kernel, which changes nothing."""
        ...
