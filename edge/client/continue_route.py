"""The device goes on where the cloud's answer broke off: the policy's `fallback.mid_stream = "continue_marked"`.

The text so far is encoded again, so that the device continues it as if it had written it; from the mark on, the answer is the device's,
and the cloud's guarantee ends there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from ...shared_protocol.errors import ContextOverflow, HybridError, InvalidRequest
from ...shared_protocol.openai import FinishReason, Span
from ..piece import Piece, usage_of
from ..session import EdgeChunk
from .answer_state import AnswerState
from .target import blame


async def continue_on_device(answer: AnswerState, shown: str, lost: HybridError) -> AsyncGenerator[Piece, None]:
    """The rest of an answer of which `shown` is the beginning. Raises `lost` when the device cannot go on from there, TargetFailed when
    it fails."""
    device, params = answer.services.device, answer.request.sampling
    if device is None or answer.prompt_ids is None or answer.decision is None or params.logprobs is not None:
        raise lost
    with blame("edge"):
        session = await device.load()
        prompt = await device.prompt_ids(answer.request)  # `shown` has values where the cloud's prompt has placeholders
    known = session.model.tokenizer.encode(shown, [(0, len(shown))], add_bos=False)
    answer.decision = replace(
        answer.decision,
        reason="quota_degraded" if lost.status == 429 else "cloud_unreachable",
        rule="fallback.mid_stream",
        why="the cloud's answer broke off: the device finished it",
    )
    yield Piece(mark="continued", spans=(Span("cloud", len(known)),))
    if params.max_tokens is not None and len(known) >= params.max_tokens:
        yield Piece(finish_reason="length", usage=usage_of(len(prompt), len(known)))
        return
    async for piece in _rest(answer, prompt, known, shown, lost):
        yield piece


async def _rest(answer: AnswerState, prompt: list[int], known: list[int], shown: str, lost: HybridError) -> AsyncGenerator[Piece, None]:
    device = answer.services.device
    assert device is not None
    written, given, count = "", len(shown), len(known)  # `written`: all of the answer by the device's count, `given`: characters shown
    try:
        with blame("edge"):
            async with aclosing(device.answer(prompt, answer.request.sampling, known)) as items:
                async for item in items:
                    written += item.text if isinstance(item, EdgeChunk) else item.known_text
                    if not (written.startswith(shown) or shown.startswith(written)):
                        raise lost  # the same tokens read as another text: what was shown cannot be continued
                    if not isinstance(item, EdgeChunk):
                        continue
                    count += 1
                    finish: FinishReason | None = item.finish_reason
                    usage = usage_of(len(prompt), count) if finish else None
                    yield Piece(written[given:], (Span("edge", 1),), (), finish, usage)
                    given = max(given, len(written))
    except (ContextOverflow, InvalidRequest) as error:  # longer than the device can hold, or finished but for the cloud's word
        raise lost from error
