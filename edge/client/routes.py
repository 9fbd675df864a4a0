"""The routes: each turns a decision into pieces of an answer, and blames the target that fails it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing

from ...router.cascade import resolve_cascade
from ...router.decision import Decision
from ...shared_protocol.errors import StreamInterrupted
from ...shared_protocol.openai import ChatCompletionChunk, FinishReason, Span, Usage
from ..piece import Piece, usage_of
from ..session import EdgeChunk
from .answer_state import AnswerState
from .clouds import Cloud
from .device_first import Watched, device_first, offer_draft
from .filled_in import filled_in
from .speculative_route import speculative_route
from .target import blame


def run_route(answer: AnswerState, decision: Decision, values: Mapping[str, str]) -> AsyncGenerator[Piece, None]:
    """`values`: what is filled in where the cloud, or a device that writes with it, has placeholders instead."""
    if decision.replaced and decision.route != "cloud":  # both must see the same prompt
        answer.on_placeholders = True
    pieces = _route(answer, decision)
    if not decision.replaced and not answer.on_placeholders:
        return pieces
    return filled_in(pieces, values, answer.request.sampling.stop, "edge" if decision.route == "edge" else "cloud")


def _route(answer: AnswerState, decision: Decision) -> AsyncGenerator[Piece, None]:
    if decision.route == "edge":
        return edge_route(answer)
    if decision.route == "cascade":
        return cascade_route(answer, decision)
    if decision.route == "speculative":
        return speculative_route(answer, decision)
    assert decision.route == "cloud"
    return cloud_route(answer, decision)


async def edge_route(answer: AnswerState, watched: Watched | None = None) -> AsyncGenerator[Piece, None]:
    """The device alone; `watched` collects what is behind each token. What a cascade has computed already is not computed again."""
    if answer.kept is not None:
        for piece in answer.kept:
            yield piece
        return
    device = answer.services.device
    assert device is not None
    prompt, params = answer.ids_of(answer.on_device), answer.on_device.sampling
    if params.logprobs is not None:  # those of known tokens are not given again
        answer.begun, answer.begun_ids = [], []
    for piece in answer.begun:
        yield piece
    known, count = answer.begun_ids, len(answer.begun_ids)
    with blame("edge"):
        async with aclosing(device.answer(prompt, params, known, watched is not None and watched.probed)) as items:
            async for item in items:
                if not isinstance(item, EdgeChunk):
                    answer.answered_by = device.name
                    continue
                count += 1
                if watched is not None:
                    watched.ids.append(item.token_id)
                    watched.signals.append(item.signal)
                    watched.hidden = item.hidden
                yield Piece(
                    text=item.text,
                    spans=(Span("edge", 1),),
                    logprobs=item.logprobs,
                    finish_reason=item.finish_reason,
                    usage=usage_of(len(prompt), count) if item.finish_reason else None,
                )


async def cascade_route(answer: AnswerState, decision: Decision) -> AsyncGenerator[Piece, None]:
    """The device first; nothing is shown until its confidence has decided who answers."""
    watched, first = Watched(probed=answer.policy.confidence.signal == "probe"), answer.judgement is None
    judgement = answer.judgement or await device_first(answer, decision, edge_route(answer, watched), watched)
    answer.decision = decision = resolve_cascade(decision, judgement)
    if decision.route == "cascade":
        answer.decision = decision = offer_draft(answer, decision)
    if decision.route == "cascade" and answer.cloud is not None:
        if first and watched.ids:
            answer.tried("edge", decision.reason)
        answer.target = answer.cloud.name
    route = cloud_route(answer, decision) if decision.route == "cascade" else edge_route(answer)
    async with aclosing(route) as chosen:
        async for piece in chosen:
            yield piece


async def cloud_route(answer: AnswerState, decision: Decision) -> AsyncGenerator[Piece, None]:
    """The cloud alone."""
    cloud, request = answer.cloud, decision.shareable
    assert cloud is not None
    assert request is not None
    answer.replaced = decision.replaced
    with blame("cloud", others=len(answer.services.clouds.targets) > 1):
        if not answer.stream:
            services = answer.services
            began, rtt = services.clock(), cloud.monitor.hoped.rtt_s or 0.0
            whole = await cloud.client.chat(request, answer.traffic, answer.asked_model)
            took, usage = services.clock() - began - rtt, whole.usage
            cloud.learned = cloud.learned.after_whole(usage.prompt_tokens, usage.completion_tokens, took)
            answer.bill(usage.prompt_tokens, usage.completion_tokens)
            answer.answered_by = whole.model
            choice = next((choice for choice in whole.choices if choice.index == 0), None)
            if choice is None:
                raise StreamInterrupted("the cloud's answer has no choice")
            yield Piece(
                text=choice.message.content or "",
                spans=(Span("cloud", whole.usage.completion_tokens),),
                logprobs=tuple(choice.logprobs.content or ()) if choice.logprobs else (),
                finish_reason=choice.finish_reason,
                usage=whole.usage,
            )
            return
        async with aclosing(cloud.client.stream(request, answer.traffic, answer.asked_model)) as chunks:
            async for piece in _stream_pieces(answer, cloud, decision, chunks):
                yield piece


async def _stream_pieces(
    answer: AnswerState, cloud: Cloud, decision: Decision, chunks: AsyncIterator[ChatCompletionChunk]
) -> AsyncGenerator[Piece, None]:
    """The cloud's chunks; its finish waits for its usage, so that both are on the last piece."""
    finish: FinishReason | None = None
    usage: Usage | None = None
    received, services = 0, answer.services
    began = ended = services.clock()
    async for chunk in chunks:
        answer.answered_by = chunk.model
        usage = chunk.usage or usage
        for choice in chunk.choices:
            if choice.index != 0:
                continue  # another answer, that nobody asked for
            finish = choice.finish_reason or finish
            logprobs = tuple(choice.logprobs.content or ()) if choice.logprobs else ()
            if choice.delta.content or logprobs:
                received += 1
                ended = services.clock()
                began = ended if received == 1 else began
                answer.bill(decision.prompt_tokens, received)
                yield Piece(text=choice.delta.content or "", logprobs=logprobs)
    if finish is None:
        raise StreamInterrupted("the cloud's stream ended without a finish reason")
    usage = usage or usage_of(decision.prompt_tokens, received)
    answer.bill(usage.prompt_tokens, usage.completion_tokens)
    cloud.learned = cloud.learned.after_plain(usage.completion_tokens - 1, ended - began)
    yield Piece(spans=(Span("cloud", usage.completion_tokens),), finish_reason=finish, usage=usage)
