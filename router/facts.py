"""What is known of a request before anything is decided: gathered once, and looked at by every stage of `decide`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from .capability import Out, cloud_out, edge_out, edge_weak
from .complexity.complexity import Parts, complexity_of
from .complexity.reading import Said
from .costs import CostModel, priced
from .plan import Plan, plan_speculation
from .policy.rules import Traced, deciding, first_match
from .policy.tables import SpeculationPolicy
from .policy.variables import Scene, Values
from .privacy import LocalOnly, Shareable
from .request import RouteContext, RouteRequest
from .tokens import prompt_tokens

if TYPE_CHECKING:
    from .learned.opinion import Opinion


@dataclass(frozen=True, slots=True)
class Facts:
    """What the stages look at. `edge_out` and `cloud_out` are None where that side can answer."""

    parts: Parts
    complexity: float
    prompt_tokens: int
    counted: bool
    output_tokens: int  # asked for, or assumed; of all n answers
    costs: CostModel
    edge_out: Out | None
    edge_weak: Out | None  # the device can answer, but the policy would rather spare it
    cloud_out: Out | None
    plan: Plan
    scene: Scene
    opinion: Opinion | None = None  # of the learned router, where the policy names one and the request is not private
    rules: tuple[Traced, ...] = ()  # those that were asked

    @property
    def rule(self) -> Traced | None:
        """The rule that decides, if any does."""
        return deciding(self.rules)


def gather(request: RouteRequest, context: RouteContext, cleared: Shareable[RouteRequest] | LocalOnly[RouteRequest]) -> Facts:
    private = isinstance(cleared, LocalOnly)
    tokens, counted = prompt_tokens(request, context)
    said = Said(request)
    parts = complexity_of(request, said)
    if cleared.value is not request:  # redacted: the cloud gets that one, the device may get either
        sent, sent_counted = prompt_tokens(cleared.value, context)
        tokens = max(tokens, sent) if sent_counted >= counted else tokens
        counted = counted and sent_counted
    needed = tokens + (request.max_tokens or 1)
    output = (request.max_tokens or context.policy.quota.assumed_output) * request.sampling.n
    costs = priced(context.costs, context.policy.price, request.model)
    if costs is not context.costs:  # rules see prices too
        context = replace(context, costs=costs)
    opinion = None if private else _opinion(request, context)
    score = parts.score if opinion is None or opinion.score is None else opinion.score
    scene = Scene(request, said, context, tokens, output, score, private)
    rules = first_match(context.policy.compiled_rules, Values(scene))
    drafting = context.policy.speculation
    if rules and rules[-1].effect == "match" and rules[-1].rule.route == "speculative":
        drafting = msgspec.structs.replace(drafting, mode="always")
    return Facts(
        parts=parts,
        complexity=score,
        prompt_tokens=tokens,
        counted=counted,
        output_tokens=output,
        costs=costs,
        edge_out=edge_out(needed, context),
        edge_weak=edge_weak(tokens, context),
        cloud_out=cloud_out(needed, context),
        plan=_plan(context, drafting),
        scene=scene,
        opinion=opinion,
        rules=rules,
    )


def _opinion(request: RouteRequest, context: RouteContext) -> Opinion | None:
    """Imported late: it needs NumPy, which a policy without a learned router does without."""
    if context.policy.learned_router is None:
        return None
    from .learned.opinion import opinion_of

    return opinion_of(context.policy.learned_router, request, context)


def _plan(context: RouteContext, limits: SpeculationPolicy) -> Plan:
    if context.speculation is not None and not context.rejected.admits(limits.max_draft):
        return Plan("off", 0, why="too many of the tokens that this user's device drafted were rejected lately")
    return plan_speculation(context.speculation, limits)
