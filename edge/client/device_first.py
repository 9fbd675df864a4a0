"""The first half of a cascade: the device answers, unseen, and its confidence decides whether that is the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...router.cascade import add_draft
from ...router.confidence.early import best_possible, is_lost
from ...router.confidence.gate import Gate, TaskGroup, task_group
from ...router.confidence.judgement import Judgement, judge, out_of_reach, stopped
from ...router.confidence.probe import Probe
from ...router.confidence.signals import confidence
from ...router.confidence.token_signal import TokenSignal
from ...router.decision import Decision
from ...router.policy.tables import ConfidencePolicy
from ...shared_protocol.openai import DeviceAnswer
from ..piece import Piece
from ..self_check import answers_agree, p_true
from .answer_state import AnswerState
from .target import blame


@dataclass(slots=True)
class Watched:
    """What is seen of an answer while it is written; one entry per token."""

    probed: bool = False  # hidden states are wanted
    signals: list[TokenSignal] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    hidden: NDArray[np.float32] | None = None  # that the last token was drawn from


async def device_first(answer: AnswerState, decision: Decision, pieces: AsyncGenerator[Piece, None], watched: Watched) -> Judgement:
    """Run `pieces`, the device's answer, which fills `watched`. It is left in `answer.kept` when it is whole, else in `answer.begun`.

    Nothing is computed where that could not change who answers: the policy judges nothing, or its gate does not fit the model.
    """
    policy, group = answer.policy.confidence, task_group(decision.parts)
    device = answer.services.device
    assert device is not None
    held = device.session.held
    gate = answer.services.gate_of(held.card, policy, held.hidden_size)
    if policy.signal == "none" or isinstance(gate, str):
        await pieces.aclose()
        judgement = judge(None, policy, gate, group)
    else:
        after, below = _bound(policy, gate, group)

        def lost(count: int, total: float, lowest: float) -> Judgement | None:
            best = best_possible(policy.signal, logprob_sum=total, lowest=lowest, max_tokens=answer.request.max_tokens)
            hopeless = is_lost(total, count, after=after, below=below)
            return out_of_reach(best, count, policy, gate, group) or (stopped(count, gate, group) if hopeless else None)

        written, given_up = await _write(pieces, watched, lost)
        if given_up is None:
            answer.kept = written
        else:
            answer.begun, answer.begun_ids = written, watched.ids
        judgement = given_up or judge(await _value(answer, watched, written, gate), policy, gate, group)
    answer.judgement = judgement
    answer.device_answer = _told(judgement, len(watched.ids), answer.request.max_tokens)
    return judgement


async def _value(answer: AnswerState, watched: Watched, written: list[Piece], gate: Gate | None) -> float | None:
    """The policy's signal of a whole answer: of its tokens, of its hidden state, or of what the model says when asked again."""
    policy, device, request = answer.policy.confidence, answer.services.device, answer.on_device
    if gate is not None and isinstance(gate.probe, Probe):
        return gate.probe(watched.hidden, watched.signals)
    if policy.signal not in ("p_true", "agreement"):
        return confidence(watched.signals, policy)
    assert device is not None
    prompt = answer.ids_of(request)
    text = "".join(piece.text for piece in written)
    with blame("edge"):
        async with device.turn() as session:
            if policy.signal == "p_true":
                return await device.run(lambda: p_true(session, request.to_openai(), text))
            params = request.sampling
            return await device.run(lambda: answers_agree(session, prompt, params, text, policy.samples))


def offer_draft(answer: AnswerState, decision: Decision) -> Decision:
    """The decision to ask the cloud, with the device's whole answer in what is sent, where the policy says so and privacy lets it."""
    policy = answer.policy
    if not policy.cascade.draft_as_context or not answer.kept or answer.device_answer is None:
        return decision
    context = None if answer.cloud is None else answer.cloud.monitor.hoped.cloud_context
    draft = "".join(piece.text for piece in answer.kept)
    decision, state = add_draft(decision, draft, len(answer.kept), policy, context)
    answer.device_answer = msgspec.structs.replace(answer.device_answer, draft=state)
    return decision


async def _write(
    pieces: AsyncGenerator[Piece, None], watched: Watched, lost: Callable[[int, float, float], Judgement | None]
) -> tuple[list[Piece], Judgement | None]:
    """One piece per token, up to the last one or to where `lost` says so; whoever leaves early frees the device.

    `lost` is asked of the number of tokens, the sum of their log-probabilities, and the lowest of them.
    """
    written: list[Piece] = []
    total, lowest = 0.0, 0.0
    async with aclosing(pieces) as running:
        async for piece in running:
            written.append(piece)
            logprob = watched.signals[-1].logprob
            total, lowest = total + logprob, min(lowest, logprob)
            if piece.finish_reason is None and (given_up := lost(len(written), total, lowest)) is not None:
                return written, given_up
    return written, None


def _bound(policy: ConfidencePolicy, gate: Gate | None, group: TaskGroup) -> tuple[int, float]:
    """From how many tokens on, and below which mean probability, an answer is given up. A policy that never does has the last word."""
    calibrated = None if gate is None else gate.group(group)
    if policy.stop_below == 0 or calibrated is None or calibrated.stop is None:
        return policy.stop_after, policy.stop_below
    return calibrated.stop.after, calibrated.stop.below


def _told(judgement: Judgement, tokens: int, max_tokens: int | None) -> DeviceAnswer:
    early = judgement.state == "stopped_early"
    return DeviceAnswer(
        gate=judgement.state,
        confidence=judgement.confidence,
        calibration_id=judgement.calibration_id,
        tokens=tokens,
        saved_at_most=max_tokens - tokens if early and max_tokens is not None else None,
    )
