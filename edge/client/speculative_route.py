"""The route on which the device drafts and the cloud verifies, and what becomes of it when the link is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from ...router.decision import Decision
from ...router.request import RouteRequest
from ...shared_protocol.errors import (
    ContextOverflow,
    FingerprintMismatch,
    HybridError,
    InvalidRequest,
    ModelNotFound,
    NotFound,
    ProtocolError,
)
from ...shared_protocol.frames import ChatMessage, Open
from ...shared_protocol.openai import Span
from ...shared_protocol.wire import pack_ids
from ..device import Device
from ..piece import Piece, merged, usage_of
from ..session import Session
from ..speculate import Run, Speculation
from ..transport.unrepeated import unrepeated
from .answer_state import AnswerState
from .target import TargetFailed, blame, outcome_of


async def speculative_route(answer: AnswerState, decision: Decision) -> AsyncGenerator[Piece, None]:
    """Draft by ids; once the cloud has refused them for its template's sake, by messages, which it renders itself.

    Before the first token: raises TargetFailed("speculation") when the cloud cannot take part, or breaks the protocol, and
    TargetFailed("cloud") when it is gone. Later, `on_link_loss` decides: the device finishes the answer alone, marked so, or the
    cloud's error is raised; one that broke the protocol is not followed any further."""
    cloud = answer.cloud
    assert cloud is not None
    if not cloud.sends_messages:
        try:
            async with aclosing(_drafted(answer, decision)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except TargetFailed as failed:
            if not isinstance(failed.error, FingerprintMismatch):
                raise
            cloud.sends_messages = True
    async with aclosing(_drafted(answer, decision)) as pieces:
        async for piece in pieces:
            yield piece


async def _drafted(answer: AnswerState, decision: Decision) -> AsyncGenerator[Piece, None]:
    services, request = answer.services, decision.shareable
    device, cloud = services.device, answer.cloud
    assert device is not None
    assert cloud is not None
    assert request is not None
    assert decision.plan is not None
    prompt, params = answer.ids_of(request.value), request.value.sampling
    answer.replaced = decision.replaced
    opening = Open(
        model=answer.asked_model or cloud.client.model or device.name,
        fingerprint=device.session.held.card.vocabulary if cloud.sends_messages else device.session.held.card.fingerprint,
        sampling=params,
        seed=answer.seed,
        lease_s=0,
        prompt_len=len(prompt),
        ids=None if cloud.sends_messages else pack_ids(prompt),
        messages=_messages(request.value) if cloud.sends_messages else None,
    )
    async with device.turn() as session:
        mutate = None if services.mutate is None else services.mutate()
        drafter = session.drafter(prompt, params, answer.seed, mutate)
        speculation = Speculation(drafter, session.model.tokenizer, opening, services.clock)
        k = decision.plan.draft_len if services.draft_len is None else services.draft_len
        lost: HybridError | None = None
        try:
            with blame("cloud"), unrepeated(request.value):
                link = await cloud.client.open_link(request, answer.traffic)
                async with aclosing(speculation.pieces(link, k, _blaming_edge(device))) as pieces:
                    async for piece in pieces:
                        answer.answered_by = device.name
                        _bill(answer, speculation)
                        yield piece
        except (FingerprintMismatch, NotFound) as error:  # another vocabulary or model, or no such endpoint: the cloud alone, then
            by_ids = isinstance(error, FingerprintMismatch) and opening.ids is not None  # only the template may be another one
            cloud.can_speculate = by_ids or isinstance(error, ModelNotFound)  # that one is this request's own
            raise TargetFailed("speculation", error) from error
        except (ProtocolError, InvalidRequest) as error:  # also: the cloud's template renders this conversation to other tokens
            if speculation.origins or (isinstance(error, InvalidRequest) and opening.ids is not None):
                raise
            raise TargetFailed("speculation", error) from error  # the cloud alone may do better
        except TargetFailed as failed:
            if failed.target != "cloud" or not speculation.origins:
                raise
            lost = failed.error
        finally:
            cloud.learned = cloud.learned.after_rounds(speculation.rounds, cloud.monitor.hoped.rtt_s)
            if speculation.rounds:
                _bill(answer, speculation)
        if lost is not None:
            if services.on_link_loss == "fail":
                raise TargetFailed("cloud", lost)
            services.clouds.note(cloud, lost)
            answer.tried(cloud.name, outcome_of(lost))
            answer.target = "edge"
            async for piece in _finish_alone(answer, session, speculation, lost):
                yield piece


def _bill(answer: AnswerState, speculation: Speculation) -> None:
    """What was committed is the user's; what was drafted in vain is counted apart."""
    prompt, drafts = len(answer.ids_of(answer.on_device)), speculation.drafts
    answer.bill(prompt, len(speculation.output_ids))
    answer.drafts, answer.rejected = drafts, drafts.proposed - drafts.accepted


def _messages(request: RouteRequest) -> tuple[ChatMessage, ...]:
    """The conversation for the cloud's own template. What a frame cannot carry makes another prompt, which the cloud then refuses."""
    return tuple(ChatMessage(message.role, message.content or "") for message in request.messages)


def _blaming_edge(device: Device) -> Run:
    async def run(work: Callable[[], object]) -> object:
        with blame("edge"):
            return await device.run(work)

    return run


async def _finish_alone(answer: AnswerState, session: Session, speculation: Speculation, lost: HybridError) -> AsyncGenerator[Piece, None]:
    """The device goes on from the committed tokens; that the target's guarantee ends there is told by the spans."""
    device = answer.services.device
    assert device is not None
    assert answer.decision is not None
    known, origins = speculation.output_ids, speculation.origins
    prompt, params = answer.ids_of(answer.on_device), answer.on_device.sampling
    try:
        rest = await device.run(lambda: session.generate(prompt, params, known=known))
    except (ContextOverflow, InvalidRequest) as error:  # longer than the device can hold, or finished but for the cloud's word
        raise lost from error
    if not rest.known_text.startswith(speculation.text.shown):
        raise lost  # what was shown is none of the answer: part of a stop string
    answer.decision = replace(
        answer.decision,
        reason="quota_degraded" if lost.status == 429 else "cloud_unreachable",
        rule="on_link_loss",
        why=f"the device finished the answer: {lost.message}",
    )
    ahead = rest.known_text.removeprefix(speculation.text.shown)
    spans = tuple(merged(Span(origin, 1) for origin in origins))
    yield Piece(text=ahead, spans=spans)
    count = len(known)
    while (chunk := await device.run(lambda: next(rest, None))) is not None:
        count += 1
        usage = usage_of(len(prompt), count) if chunk.finish_reason else None
        yield Piece(chunk.text, (Span("edge", 1),), chunk.logprobs, chunk.finish_reason, usage)
