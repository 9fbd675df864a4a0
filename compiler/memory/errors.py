"""What can be wrong with buffers, with a plan for them, and with the memories they are to lie in."""

from __future__ import annotations

from ...shared_protocol.errors import HybridError, InvalidRequest


class InvalidBuffers(InvalidRequest):
    """Buffers, or rules between them, that no plan could be made for: `ids` names those at fault."""

    code = "invalid_buffers"

    def __init__(self, message: str, *, ids: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.ids = ids


class DoesNotFit(HybridError):
    """No plan within the capacity was found; says what would fit. `needed` is the smallest size in bytes that is known to suffice."""

    status, code = 422, "does_not_fit"

    def __init__(self, message: str, *, needed: int, capacity: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.needed = needed
        self.capacity = capacity


class InvalidPlan(HybridError):
    """A plan breaks what it promises; `fault` is one of verifier.FAULTS, `ids` name the buffers. Always a bug of ours: nothing is run."""

    code = "invalid_plan"

    def __init__(self, message: str, *, fault: str, ids: tuple[str, ...]) -> None:
        super().__init__(message)
        self.fault = fault
        self.ids = ids
