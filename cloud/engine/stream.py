"""The outputs of one request, as an asyncio program reads them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from .messages import StepOutput


class OutputStream(AsyncIterator[StepOutput]):
    """An iterator that ends after the output with a finish_reason; leaving it earlier calls `on_leave` once.

    Leaving is `aclose()`, a cancelled `__anext__`, or dropping the last reference. One reader; `push` is called on the reader's loop.
    """

    def __init__(self, request_id: str, on_leave: Callable[[str], None]) -> None:
        self.request_id = request_id
        self._on_leave = on_leave
        self._outputs: deque[StepOutput] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._complete = False  # the last output has been pushed
        self._ended = False  # nothing more will be yielded

    @property
    def unread(self) -> int:
        return 0 if self._ended else len(self._outputs)

    def push(self, output: StepOutput) -> None:
        assert not self._complete, f"request {self.request_id} had an output after its last"
        self._outputs.append(output)
        self._complete = output.finish_reason is not None
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def __anext__(self) -> StepOutput:
        while not self._outputs or self._ended:
            if self._complete or self._ended:
                self._ended = True
                raise StopAsyncIteration
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            except asyncio.CancelledError:
                self._leave()
                raise
            finally:
                self._reader = None
        return self._outputs.popleft()

    async def aclose(self) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._ended:
            return
        self._ended = True
        if not self._complete:
            self._on_leave(self.request_id)

    def __del__(self) -> None:
        self._leave()
