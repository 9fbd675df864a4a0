"""The second half of a cascade: the device has answered; is that good enough?"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import msgspec

from .confidence.judgement import Judgement
from .decision import Decision
from .message import Message
from .policy.policy import Policy
from .privacy import LocalOnly, clear
from .request import RouteRequest

DraftState = Literal["sent", "private", "too_long"]

DRAFT = (
    "A smaller model has drafted the answer below. It may be wrong. Use what is right in it, and give your own complete answer to "
    "what was asked before; do not mention the draft.\n\nDraft:\n"
)
DRAFT_TOKENS = 64  # more than DRAFT takes under any tokenizer we know


def resolve_cascade(decision: Decision, judgement: Judgement) -> Decision:
    """Keep the device's answer (route edge) where the judgement does, else hand over to the cloud (route cascade).

    Decisions of other routes only get the score.
    """
    scores = msgspec.structs.replace(decision.scores, confidence=judgement.confidence, gate=judgement.state)
    provenance = msgspec.structs.replace(decision.provenance, calibration_id=judgement.calibration_id)
    if decision.route != "cascade":
        return replace(decision, scores=scores)
    resolved = replace(decision, rule=judgement.rule, scores=scores, provenance=provenance, why=judgement.why)
    return replace(resolved, route="edge", reason="simple", cloud_tokens=0, shareable=None) if judgement.keeps else resolved


def add_draft(decision: Decision, draft: str, draft_tokens: int, policy: Policy, cloud_context: int | None) -> tuple[Decision, DraftState]:
    """The decision with the device's answer in what the cloud is sent, after the last message; or as it was, and why.

    The whole of it is searched again: what the device wrote may be private although nothing was that it was asked. A request that goes
    out redacted takes no draft, whose words no placeholder stands for. `cloud_context`: tokens, None when it is not known.
    """
    shareable, needed = decision.shareable, draft_tokens + DRAFT_TOKENS
    if shareable is None or decision.assessment.verdict != "public":
        return decision, "private"
    if cloud_context is not None and decision.prompt_tokens + needed + (shareable.value.max_tokens or 1) > cloud_context:
        return decision, "too_long"
    cleared = clear(_with_draft(shareable.value, draft), policy)
    if isinstance(cleared, LocalOnly) or cleared.assessment.verdict != "public":
        return decision, "private"
    return replace(decision, shareable=cleared, prompt_tokens=decision.prompt_tokens + needed), "sent"


def _with_draft(request: RouteRequest, draft: str) -> RouteRequest:
    """Templates often refuse two user messages in a row, so that it becomes part of the last one where that is the user's."""
    *before, last = request.messages
    if last.role == "user":
        messages = (*before, replace(last, content=f"{last.content or ''}\n\n{DRAFT}{draft}"))
    else:
        messages = (*before, last, Message("user", DRAFT + draft))
    return replace(request, messages=messages)
