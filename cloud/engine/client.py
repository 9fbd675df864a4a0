"""How a front-end talks to an engine, whatever lies between them."""

from __future__ import annotations

from typing import Protocol

from .messages import Add, Draft, EngineStats
from .stream import OutputStream


class EngineClient(Protocol):
    """One engine as an asyncio program sees it. Leaving the iterator of `add` early aborts the request."""

    kernel_id: str
    max_model_len: int  # prompt and output tokens of one request

    def add(self, message: Add) -> OutputStream:
        """Start a request; yield an output per step that touched it. Ends after the output with a finish_reason.

        Raises ContextOverflow at once when the request can never fit, Unavailable when the engine is draining or dead.
        """
        ...

    def draft(self, message: Draft) -> None:
        """Hand a device's window to a parked remote request; the answer comes through its iterator."""
        ...

    def abort(self, request_id: str) -> None: ...

    def stats(self) -> EngineStats: ...

    async def drain(self) -> None:
        """Refuse new requests from now on; return when those that run have ended."""
        ...

    async def close(self) -> None:
        """Abort what runs and end the engine."""
        ...
