"""The second half of a cascade: the device has answered; is that good enough?"""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec

from .decision import Decision
from .policy import Policy


def resolve_cascade(decision: Decision, confidence: float | None, policy: Policy) -> Decision:
    """Keep the device's answer (route edge) when `confidence` reaches the threshold, else hand over to the cloud (route cascade).

    A confidence that is unknown (None, not a number) hands over. Decisions of other routes only get the score.
    """
    known = confidence if confidence is not None and math.isfinite(confidence) else None
    scores = msgspec.structs.replace(decision.scores, confidence=known)
    if decision.route != "cascade":
        return replace(decision, scores=scores)
    threshold = policy.confidence.threshold
    if known is not None and known >= threshold:
        return replace(
            decision,
            route="edge",
            reason="simple",
            rule="confidence.threshold",
            scores=scores,
            why=f"the device's answer has confidence {known:.2f}, {threshold:.2f} is enough",
            cloud_tokens=0,
            shareable=None,
        )
    shown = "unknown" if known is None else f"{known:.2f}"
    why = f"the device's answer has confidence {shown}, below {threshold:.2f}: the cloud answers"
    return replace(decision, rule="confidence.threshold", scores=scores, why=why)
