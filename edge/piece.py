"""One bit of an answer, whichever side it comes from, and how pieces become OpenAI's shapes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from ..shared_protocol.openai import (
    ChatChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChoiceLogprobs,
    ChunkChoice,
    Delta,
    FinishReason,
    HybridInfo,
    Message,
    Span,
    TokenLogprob,
    Usage,
)

Mark = Literal["restarted", "continued"]


@dataclass(frozen=True, slots=True)
class Piece:
    """`finish_reason` and `usage` are on the last piece of an answer, and only there."""

    text: str = ""
    spans: tuple[Span, ...] = ()  # origin of the tokens that this piece stands for
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    mark: Mark | None = None  # of a piece without text


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """What all parts of one answer share."""

    id: str
    created: int  # seconds since 1970
    model: str


def head_of(model: str | None) -> AnswerHead:
    return AnswerHead(id=f"chatcmpl-{uuid4().hex}", created=int(time.time()), model=model or "hybrid")


def merged(spans: Iterable[Span]) -> list[Span]:
    """Neighbours of one origin joined, empty ones dropped."""
    out: list[Span] = []
    for span in spans:
        if out and out[-1].origin == span.origin:
            out[-1] = Span(span.origin, out[-1].tokens + span.tokens)
        elif span.tokens:
            out.append(span)
    return out


def usage_of(prompt: int, completion: int) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


def completion_of(head: AnswerHead, pieces: Sequence[Piece], info: HybridInfo) -> ChatCompletion:
    """The whole answer of pieces of which the last is final. What was given before a restart is no part of it."""
    begin = max((place for place, piece in enumerate(pieces) if piece.mark == "restarted"), default=0)
    pieces = pieces[begin:]
    last = pieces[-1]
    assert last.finish_reason is not None
    assert last.usage is not None
    logprobs = [entry for piece in pieces for entry in piece.logprobs]
    choice = ChatChoice(
        index=0,
        message=Message(role="assistant", content="".join(piece.text for piece in pieces)),
        finish_reason=last.finish_reason,
        logprobs=ChoiceLogprobs(content=logprobs) if logprobs else None,
    )
    return ChatCompletion(id=head.id, created=head.created, model=head.model, choices=[choice], usage=last.usage, hybrid=info)


def chunk_of(head: AnswerHead, piece: Piece, *, first: bool, info: HybridInfo | None) -> ChatCompletionChunk:
    """A piece as a chunk of a stream; the first tells the role, the last (which has `info`) the finish and the usage."""
    choice = ChunkChoice(
        index=0,
        delta=Delta(role="assistant" if first else None, content=piece.text or None),
        finish_reason=piece.finish_reason,
        logprobs=ChoiceLogprobs(content=list(piece.logprobs)) if piece.logprobs else None,
    )
    return ChatCompletionChunk(id=head.id, created=head.created, model=head.model, choices=[choice], usage=piece.usage, hybrid=info)
