"""What is known of one request while it is answered; the routes fill it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...router.confidence.judgement import Judgement
from ...router.decision import Decision
from ...router.policy.policy import Policy
from ...router.request import Moment, RouteRequest
from ...shared_protocol.openai import Attempt, DeviceAnswer, Drafts, HybridInfo, Span
from ..piece import Piece, merged
from ..transport.lane import Traffic
from .clouds import Cloud
from .services import Services


@dataclass(slots=True)
class AnswerState:
    services: Services
    policy: Policy  # from the request's start to its end, whatever becomes of the file
    moment: Moment  # when it started
    request: RouteRequest
    seed: int
    stream: bool
    answered_by: str | None = None  # the model that writes the answer, as soon as it is known
    prompt_ids: list[int] | None = None  # by the device's tokenizer; None: it has no model, or cannot render this conversation
    sent: RouteRequest | None = None  # what the cloud gets, where that holds placeholders ...
    sent_ids: list[int] | None = None  # ... and its tokens
    on_placeholders: bool = False  # what the device has computed came from `sent`, as a draft for the cloud must
    replaced: Mapping[str, int] = field(default_factory=dict)  # placeholders of each kind in what was sent
    decision: Decision | None = None
    cloud: Cloud | None = None  # the target that is asked when the cloud has a part
    target: str = "edge"  # who computes the answer now
    kept: list[Piece] | None = None  # the device's whole answer, when a cascade has computed it
    begun: list[Piece] = field(default_factory=list)  # the device's answer as far as a cascade has computed it, when it gave it up ...
    begun_ids: list[int] = field(default_factory=list)  # ... and its tokens
    judgement: Judgement | None = None  # of the device's answer, once a cascade has it
    device_answer: DeviceAnswer | None = None  # what is told of it
    prompt_used: int = 0  # tokens to bill for this attempt: those that the cloud has computed ...
    output_used: int = 0  # ... of the answer
    rejected: int = 0  # drafted tokens that the cloud has computed and not kept, in this attempt
    told: int = 0  # of the tokens to bill, those that stand in `attempts` already
    drafts: Drafts | None = None
    attempts: list[Attempt] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)
    spans: list[Span] = field(default_factory=list)

    def ids_of(self, request: RouteRequest) -> list[int]:
        """The tokens of the request as it is, or as it is sent; of no other."""
        ids = self.prompt_ids if request is self.request else self.sent_ids if request == self.sent else None
        assert ids is not None
        return ids

    @property
    def on_device(self) -> RouteRequest:
        """What the device answers. Once it has written from placeholders it goes on from them."""
        return self.sent if self.on_placeholders and self.sent is not None else self.request

    @property
    def asked_model(self) -> str | None:
        """What the cloud is asked for; None: its own choice."""
        return self.request.model or (None if self.cloud is None else self.cloud.model)

    def bill(self, prompt: int, output: int) -> None:
        """What the cloud has computed so far in this attempt."""
        self.prompt_used, self.output_used = prompt, output

    def tried(self, target: str, outcome: str) -> None:
        """Tell of an attempt, with what it is billed for beyond what was told before."""
        tokens = self.prompt_used + self.output_used
        self.attempts.append(Attempt(target, outcome, tokens - self.told))
        self.told = tokens

    def settled(self) -> None:
        self.prompt_used = self.output_used = self.rejected = self.told = 0

    @property
    def info(self) -> HybridInfo:
        assert self.decision is not None
        return HybridInfo(
            seed=self.seed,
            route=self.decision.route,
            reason=self.decision.reason,
            rule=self.decision.rule,
            policy=self.decision.provenance.policy_hash,
            policy_version=self.decision.provenance.policy_version or None,
            spans=merged(self.spans),
            bytes_sent=self.traffic.bytes_sent,
            drafts=self.drafts,
            drafting=_drafting(self.decision),
            device_answer=self.device_answer,
            attempts=list(self.attempts),
            redacted=dict(self.replaced) or None,
        )


def _drafting(decision: Decision) -> str | None:
    """Why the two wrote this answer together, or did not."""
    plan = decision.plan
    if plan is None or decision.route not in ("cloud", "speculative"):
        return None
    unused = decision.route == "cloud" and plan.mode == "sync"
    return f"the policy sends this prompt to the cloud alone; together: {plan.why}" if unused else plan.why
