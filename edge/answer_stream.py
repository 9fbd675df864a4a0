"""A streamed answer in OpenAI's shape."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from ..shared_protocol.openai import ChatCompletionChunk
from .piece import Piece, chunk_of, head_of
from .state import AnswerState


class AnswerStream:
    """The chunks of one answer; the last carries the finish, the usage and `.hybrid`.

    Leave it early with `close` or as an async context manager: whatever computes for it is stopped.
    """

    def __init__(self, state: AnswerState, pieces: AsyncGenerator[Piece, None], first: Piece) -> None:
        self._pieces = pieces
        self._chunks = self._run(state, first)

    def __aiter__(self) -> AnswerStream:
        return self

    async def __anext__(self) -> ChatCompletionChunk:
        return await anext(self._chunks)

    async def __aenter__(self) -> AnswerStream:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._chunks.aclose()
        await self._pieces.aclose()

    async def _run(self, state: AnswerState, piece: Piece) -> AsyncGenerator[ChatCompletionChunk, None]:
        head, first = head_of(state.answered_by), True
        while piece.finish_reason is None:
            yield chunk_of(head, piece, first=first, info=None)
            piece, first = await anext(self._pieces), False
        await self._pieces.aclose()  # the route is over, and all its bytes are counted, before the last chunk says so
        yield chunk_of(head, piece, first=first, info=state.info)
