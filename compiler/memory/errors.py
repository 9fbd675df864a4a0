"""What can be wrong with buffers, with a plan for them, and with the memories they are to lie in."""

from __future__ import annotations

from ...shared_protocol.compile_errors import DoesNotFit, PlanInvalid
from ...shared_protocol.errors import InvalidRequest


class InvalidBuffers(InvalidRequest):
    """Buffers, or rules between them, that no plan could be made for: `ids` names those at fault."""

    code = "invalid_buffers"

    def __init__(self, message: str, *, ids: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.ids = ids


class MemoryTooSmall(DoesNotFit):
    """No plan within the capacity was found. `needed` bytes would do as far as is known, or are the least if nothing can fit."""

    def __init__(self, message: str, *, needed: int, capacity: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.needed = needed
        self.capacity = capacity


class PlanFault(PlanInvalid):
    """A plan breaks what it promises; `fault` is one of verifier.FAULTS, `ids` name the buffers. Always a bug of ours: nothing is run."""

    def __init__(self, message: str, *, fault: str, ids: tuple[str, ...]) -> None:
        super().__init__(message)
        self.fault = fault
        self.ids = ids
