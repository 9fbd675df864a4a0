"""POST /v1/chat/completions: messages in, an answer or a stream of its pieces out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response

from ...shared_protocol.errors import InvalidRequest
from ...shared_protocol.openai import (
    ChatChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChunkChoice,
    Delta,
    FinishReason,
    HybridInfo,
    Message,
)
from ...shared_protocol.sampling import SamplingParams
from ..engine.frontend import Chunk
from .body import read_body
from .generation import Job, Service, Tally, collect
from .logprobs import chat_logprobs
from .prepare import blaming, job_of, sampling_params
from .request_info import info_of
from .respond import json_response
from .schemas import ChatRequest
from .sse import EventStream
from .watch import while_connected


async def chat_completions(request: Request) -> Response:
    service: Service = request.app.state.service
    info = info_of(request.scope)
    arrival = service.clock()
    body = await read_body(request, ChatRequest)
    service.check_model(body.model)
    params = _params(body)
    with service.admission.enter(), blaming("messages"):
        rendering = service.frontend.render([message.for_template() for message in body.messages], service.max_model_len)
        prompt = await while_connected(request.receive, rendering)
    job = job_of(service, info, body, prefix="chatcmpl", prompts=[prompt], params=params, param="messages", arrival=arrival)
    tally = Tally.of(job)
    chunks = service.run(job, tally, info)
    if body.stream:
        return EventStream(stream(job, chunks, tally, include_usage=body.include_usage), ping_s=service.settings.ping_s)
    return json_response(await while_connected(request.receive, whole(job, chunks, tally)))


def _params(body: ChatRequest) -> SamplingParams:
    newer = body.max_completion_tokens
    try:
        return sampling_params(
            body,
            max_tokens=body.max_tokens if newer is None else newer,
            logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        )
    except InvalidRequest as error:
        if error.param == "max_tokens" and newer is not None:
            error.param = "max_completion_tokens"
        raise


async def whole(job: Job, chunks: AsyncIterator[Chunk], tally: Tally) -> ChatCompletion:
    """Gather all choices into one answer."""
    by_choice = await collect(chunks, job.choices)
    return ChatCompletion(
        id=job.id,
        created=job.created,
        model=job.model,
        choices=[
            ChatChoice(
                index=index,
                message=Message(role="assistant", content="".join(chunk.text for chunk in pieces)),
                finish_reason=finish_of(pieces[-1]),
                logprobs=chat_logprobs(pieces, job.params),
            )
            for index, pieces in enumerate(by_choice)
        ],
        usage=tally.usage(),
        hybrid=HybridInfo(seed=job.params.seed),
    )


async def stream(job: Job, chunks: AsyncGenerator[Chunk], tally: Tally, *, include_usage: bool) -> AsyncGenerator[ChatCompletionChunk]:
    """Per choice: its role, its pieces, its end; then, when asked for, the usage.

    Chunks without text carry `hybrid`. Nothing is yielded before the engine has said something, so that a refusal keeps its status.
    """
    told = HybridInfo(seed=job.params.seed)

    def chunk_of(choice: ChunkChoice) -> ChatCompletionChunk:
        bare = choice.delta.content in (None, "")
        return ChatCompletionChunk(id=job.id, created=job.created, model=job.model, choices=[choice], hybrid=told if bare else None)

    begun = False
    async with aclosing(chunks):
        async for chunk in chunks:
            if not begun:
                begun = True
                for index in range(job.choices):
                    yield chunk_of(ChunkChoice(index, Delta(role="assistant", content="")))
            logprobs = chat_logprobs([chunk], job.params)
            if chunk.text or (logprobs and logprobs.content):
                yield chunk_of(ChunkChoice(chunk.index, Delta(content=chunk.text), logprobs=logprobs))
            if chunk.finish_reason is not None:
                yield chunk_of(ChunkChoice(chunk.index, Delta(), finish_reason=finish_of(chunk)))
    if include_usage:
        usage = tally.usage()
        yield ChatCompletionChunk(id=job.id, created=job.created, model=job.model, choices=[], usage=usage, hybrid=told)


def finish_of(last: Chunk) -> FinishReason:
    """How a choice ended; faults and aborts never come here as a finish."""
    return "length" if last.finish_reason == "length" else "stop"
