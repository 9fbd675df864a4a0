"""A streamed answer in OpenAI's shape."""

from __future__ import annotations

from dataclasses import replace

from ...shared_protocol.openai import ChatCompletionChunk, HybridInfo
from ..piece import AnswerHead, Piece, chunk_of, head_of
from .answer_state import AnswerState
from .pump import Pump


class AnswerStream:
    """The chunks of one answer; the last carries the finish, the usage and `.hybrid`.

    A chunk whose `.hybrid` says `restarted` makes what came before it void: the policy's `fallback.mid_stream` allows that, or not.

    Leave it early with `close` or as an async context manager, also from another task: whatever computes for it is stopped. The
    answer is computed whether or not it is read.
    """

    def __init__(self, state: AnswerState, pieces: Pump[Piece], first: Piece) -> None:
        self._state = state
        self._pieces = pieces
        self._first: Piece | None = first
        self._head: AnswerHead | None = None

    def __aiter__(self) -> AnswerStream:
        return self

    async def __anext__(self) -> ChatCompletionChunk:
        piece, self._first = self._first, None
        piece = piece or await self._pieces.next()
        if piece is None:
            raise StopAsyncIteration
        first = self._head is None
        head = self._head = self._head or head_of(self._state.answered_by)
        if piece.mark is not None:
            head = self._head = replace(head, model=self._state.answered_by or head.model)
            told = HybridInfo(restarted=piece.mark == "restarted", continued=piece.mark == "continued")
            return chunk_of(head, piece, first=first, info=told)
        if piece.finish_reason is None:
            return chunk_of(head, piece, first=first, info=None)
        await self._pieces.finish()  # all its bytes are counted before the last chunk says so
        return chunk_of(head, piece, first=first, info=self._state.info)

    async def __aenter__(self) -> AnswerStream:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._first = None
        await self._pieces.close()
