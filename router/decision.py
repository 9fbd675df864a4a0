"""The answer of the router, and how it is written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import msgspec

from .complexity.complexity import Parts
from .confidence.judgement import GateState
from .costs import Expected
from .plan import Plan
from .policy.rules import Traced
from .privacy import Assessment, Shareable
from .request import RouteRequest
from .verdict import Verdict

if TYPE_CHECKING:
    from .learned.opinion import Opinion

Route = Literal["edge", "cloud", "cascade", "speculative", "refuse"]
Reason = Literal[
    "simple",
    "hard",
    "low_confidence",
    "drafted",
    "private",
    "redacted",
    "quota_degraded",
    "over_quota",
    "cloud_unreachable",
    "edge_unavailable",
    "private_too_hard",
    "too_long",
    "blocked",
]


@dataclass(frozen=True, slots=True)
class Choice:
    """What one stage of the decision says."""

    route: Route
    reason: Reason
    rule: str
    why: str
    quota_rule: str | None = None  # what of the quota took the cloud away
    retry_after_s: float | None = None


class Scores(msgspec.Struct, frozen=True):
    complexity: float  # 0 .. below 1
    confidence: float | None  # None until the device has answered, and where it cannot be had
    privacy: Verdict
    gate: GateState | None = None  # what became of the device's answer; None until it has answered


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    policy_hash: str
    tokens: Literal["exact", "estimated"]
    calibration_id: str | None  # of the gate that had a part in it
    policy_version: str = ""  # the owner's own name for the policy
    learned_id: str = ""  # of the learned router, where the policy names one
    learned_data: str = ""  # hash of the outcomes that it has learned from


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision as `hybrid route --json` prints it: no word of the request is in it. `replaced` is there when something was."""

    route: Route
    reason: Reason
    rule: str
    scores: Scores
    expected: dict[str, Expected | None]
    provenance: Provenance
    replaced: Mapping[str, int] = {}  # how many placeholders of each kind are in what is sent


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a request is answered, and why. `shareable` is there exactly when the route may touch the cloud."""

    route: Route
    reason: Reason
    rule: str  # what settled it: a built-in such as "complexity.hard_from"
    scores: Scores
    expected: dict[str, Expected | None]
    provenance: Provenance
    why: str  # one sentence for people, without any word of the request
    prompt_tokens: int
    cloud_tokens: int  # to reserve from the quota before dispatch; 0 when the cloud has no part in it
    parts: Parts  # of the complexity
    assessment: Assessment
    plan: Plan | None = None  # of speculation, where it was considered
    cost: float | None = None  # of cloud_tokens, by the policy's prices; None: not known
    quota_rule: str | None = None  # what of the quota took the cloud away; a capacity's key: it never holds as much
    retry_after_s: float | None = None  # of a refusal or degradation that waiting would mend
    shareable: Shareable[RouteRequest] | None = field(default=None, repr=False)
    opinion: Opinion | None = None  # of the learned router
    rules: tuple[Traced, ...] = ()  # the policy's rules that were asked, the deciding one last

    @property
    def replaced(self) -> Mapping[str, int]:
        """How many placeholders of each kind are in what is sent."""
        return {} if self.shareable is None else self.assessment.replaced

    def report(self) -> Report:
        return Report(self.route, self.reason, self.rule, self.scores, self.expected, self.provenance, dict(self.replaced))

    def to_json(self) -> bytes:
        return msgspec.json.encode(self.report())
