"""POST /v1/completions: one or several prompts, as text or as token ids, continued as they stand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response

from ...shared_protocol.errors import InvalidRequest, UnsupportedParameter
from ...shared_protocol.openai import Completion, CompletionChoice, HybridInfo
from ..engine.frontend import Chunk
from .body import read_body
from .chat import finish_of
from .generation import Job, Service, Tally, collect
from .logprobs import completion_logprobs
from .prepare import blaming, job_of, sampling_params
from .request_info import info_of
from .respond import json_response
from .schemas import CompletionRequest
from .sse import EventStream
from .watch import while_connected

DEFAULT_MAX_TOKENS = 16  # OpenAI's


async def completions(request: Request) -> Response:
    service: Service = request.app.state.service
    info = info_of(request.scope)
    arrival = service.clock()
    body = await read_body(request, CompletionRequest)
    service.check_model(body.model)
    if body.echo:
        raise UnsupportedParameter(
            "echo is not served yet", param="echo", hint="leave it out, and put the prompt before the answer yourself"
        )
    with service.admission.enter(), blaming("prompt"):
        prompts = await while_connected(request.receive, _ids(service, _prompts(body, service.settings.max_choices)))
    max_tokens = default_max_tokens(prompts, service.max_model_len) if body.max_tokens is None else body.max_tokens
    params = sampling_params(body, max_tokens=max_tokens, logprobs=body.logprobs)
    job = job_of(service, info, body, prefix="cmpl", prompts=prompts, params=params, param="prompt", arrival=arrival)
    tally = Tally.of(job)
    chunks = service.run(job, tally, info)
    if body.stream:
        return EventStream(stream(job, chunks, tally, include_usage=body.include_usage), ping_s=service.settings.ping_s)
    return json_response(await while_connected(request.receive, whole(job, chunks, tally)))


def _prompts(body: CompletionRequest, limit: int) -> list[str | list[int]]:
    """The prompts one by one. A flat list of numbers is one prompt."""
    prompt = body.prompt
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        return [prompt]
    if not prompt:
        raise InvalidRequest("prompt must hold at least one prompt", param="prompt")
    if len(prompt) > limit:
        raise InvalidRequest(f"prompt holds {len(prompt)} prompts, the limit is {limit}", param="prompt")
    return list(prompt)  # type: ignore[arg-type]


async def _ids(service: Service, prompts: Sequence[str | list[int]]) -> list[list[int]]:
    limit, tokenize = service.max_model_len, service.frontend.tokenize
    return [await tokenize(prompt, limit) if isinstance(prompt, str) else prompt for prompt in prompts]


def default_max_tokens(prompts: Sequence[Sequence[int]], limit: int) -> int:
    """OpenAI's default, or what the context has left after the longest prompt: nobody who did not ask for tokens is refused for them."""
    return max(1, min(DEFAULT_MAX_TOKENS, limit + 1 - max(map(len, prompts))))


async def whole(job: Job, chunks: AsyncIterator[Chunk], tally: Tally) -> Completion:
    by_choice = await collect(chunks, job.choices)
    return Completion(
        id=job.id,
        created=job.created,
        model=job.model,
        choices=[
            CompletionChoice(
                index=index,
                text="".join(chunk.text for chunk in pieces),
                finish_reason=finish_of(pieces[-1]),
                logprobs=completion_logprobs(pieces, job.params),
            )
            for index, pieces in enumerate(by_choice)
        ],
        usage=tally.usage(),
        hybrid=HybridInfo(seed=job.params.seed),
    )


async def stream(job: Job, chunks: AsyncGenerator[Chunk], tally: Tally, *, include_usage: bool) -> AsyncGenerator[Completion]:
    """Per choice its pieces, the last with its finish reason; then, when asked for, the usage. Ends and usage carry `hybrid`."""
    told = HybridInfo(seed=job.params.seed)
    offsets = dict.fromkeys(range(job.choices), 0)  # characters of tokens sent, per choice
    async with aclosing(chunks):
        async for chunk in chunks:
            logprobs = completion_logprobs([chunk], job.params, offsets[chunk.index])
            ended = chunk.finish_reason is not None
            if not (chunk.text or ended or (logprobs and logprobs.tokens)):
                continue
            if logprobs and logprobs.tokens:
                offsets[chunk.index] = logprobs.text_offset[-1] + len(logprobs.tokens[-1])
            choice = CompletionChoice(chunk.index, chunk.text, finish_of(chunk) if ended else None, logprobs)
            hybrid = told if ended else None
            yield Completion(id=job.id, created=job.created, model=job.model, choices=[choice], usage=None, hybrid=hybrid)
    if include_usage:
        yield Completion(id=job.id, created=job.created, model=job.model, choices=[], usage=tally.usage(), hybrid=told)
