"""The second half of a cascade: the device has answered; is that good enough?"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from .confidence.judgement import Judgement
from .decision import Decision


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
