"""Where a request is answered: one pure function, the same for the dry run and for serving.

    1 privacy      private: the device, or nobody                (settled without a look at the cloud); or redacted
    2 capability   who is there, and whose context is long enough
    3 quota        takes the cloud away from a request that would need it
    4 rules        the policy's own wishes, of what the stages before have left (policy/rules.py)
    5 complexity   of the rules, or of a learned router where the policy names one that knows such prompts:
                   0 -- edge -- cascade_from -- cascade -- hard_from -- speculative -- draft_below -- cloud -- 1
    6 confidence   after the device has answered: cascade.resolve_cascade
    7 plan         whether drafting pays, which chooses between the last two

The stage that took the wanted way away names the reason; what the device would answer anyway blames nobody. Falling back is
deciding again with the facts changed (the link not reachable, the runtime not available): privacy is asked again each time, so no
failure relaxes it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from .cascade import DRAFT_TOKENS
from .cascade import resolve_cascade as resolve_cascade
from .costs import cloud_price, expected_costs
from .decision import Choice, Decision, Provenance, Route, Scores
from .facts import Facts, gather
from .policy.policy import Policy
from .policy.ruling import bound_by, by_rule
from .policy.variables import Scene
from .privacy import Assessment, LocalOnly, clear
from .request import RouteContext, RouteRequest


def decide(request: RouteRequest, context: RouteContext) -> Decision:
    """Decide. Never raises, whatever the request holds."""
    cleared = clear(request, context.policy, context.privacy_floor, context.redaction)
    facts = gather(request, context, cleared)
    assessment, shareable = cleared.assessment, None if isinstance(cleared, LocalOnly) else cleared
    choice = choose(facts, assessment, context, private=shareable is None)
    to_cloud = choice.route in ("cloud", "cascade", "speculative")
    sync_s = facts.plan.sync_s[facts.plan.draft_len] if facts.plan.sync_s and facts.plan.draft_len else None
    return Decision(
        route=choice.route,
        reason=choice.reason,
        rule=choice.rule,
        scores=Scores(facts.complexity, None, assessment.verdict),
        expected=expected_costs(
            facts.costs,
            prompt=facts.prompt_tokens,
            output=facts.output_tokens,
            edge=facts.edge_out is None,
            cloud=shareable is not None and facts.cloud_out is None,
            rtt_s=context.link.rtt_s,
            sync_s=sync_s,
        ),
        provenance=_provenance(facts, context.policy),
        why=choice.why,
        prompt_tokens=facts.prompt_tokens,
        cloud_tokens=sum(_cloud_use(choice.route, facts, context)) if to_cloud else 0,
        parts=facts.parts,
        assessment=assessment,
        plan=facts.plan if shareable is not None else None,
        shareable=shareable if to_cloud else None,
        opinion=facts.opinion,
        rules=facts.rules,
        cost=_money(choice.route, facts, context) if to_cloud else None,
        quota_rule=choice.quota_rule,
        retry_after_s=choice.retry_after_s,
    )


def scene_of(request: RouteRequest, context: RouteContext) -> Scene:
    """What the rules of `decide` see, to show what each of them says."""
    return gather(request, context, clear(request, context.policy, context.privacy_floor, context.redaction)).scene


def choose(facts: Facts, assessment: Assessment, context: RouteContext, *, private: bool) -> Choice:
    """All stages, of what is known. `record.redecide` calls it too, with what was known then."""
    if private:
        choice = _private(assessment, facts, context)
    else:
        choice = _within_quota(_available(facts, context) or _wanted(facts, context), facts, context)
    return _redacted(bound_by(choice, facts.rule, facts.plan), assessment)


def _provenance(facts: Facts, policy: Policy) -> Provenance:
    tokens: Literal["exact", "estimated"] = "exact" if facts.counted else "estimated"
    if facts.opinion is None:
        return Provenance(policy.hash, tokens, None, policy.version)
    return Provenance(policy.hash, tokens, None, policy.version, facts.opinion.id, facts.opinion.data)


def _private(assessment: Assessment, facts: Facts, context: RouteContext) -> Choice:
    kinds = ", ".join((*assessment.findings, *assessment.failed)) or "earlier turns"
    if assessment.verdict == "block":
        return Choice("refuse", "blocked", "privacy.block", f"the policy blocks what was found ({kinds})")
    if facts.edge_out is not None:
        why = f"private ({kinds}), and the device cannot answer: {facts.edge_out.why}"
        return Choice("refuse", facts.edge_out.reason, facts.edge_out.rule, why)
    limit = context.policy.privacy.too_hard_from
    if facts.complexity >= limit:
        why = f"private ({kinds}), and too hard for the device: complexity {facts.complexity:.2f}, refused from {limit:.2f} on"
        return Choice("refuse", "private_too_hard", "privacy.too_hard_from", why)
    return Choice("edge", "private", f"privacy.{assessment.verdict}", f"stays on the device ({kinds})")


def _available(facts: Facts, context: RouteContext) -> Choice | None:
    """The one side that can answer; None when both can. A prompt that is the device's anyway does not blame the cloud."""
    edge, cloud = facts.edge_out, facts.cloud_out
    if cloud is not None and edge is not None:
        return Choice("refuse", cloud.reason, cloud.rule, f"{edge.why}, and {cloud.why}")
    if cloud is not None:
        wanted = _wanted(facts, context)
        left = Choice("edge", cloud.reason, cloud.rule, f"{cloud.why}: the device answers")
        return wanted if wanted.route in ("edge", "refuse") else left
    if edge is not None:
        ruled = by_rule(facts.rule, facts.plan)
        left = Choice("cloud", edge.reason, edge.rule, f"{edge.why}: the cloud answers")
        return ruled if ruled and ruled.route in ("cloud", "refuse") else left
    return None


def _within_quota(choice: Choice, facts: Facts, context: RouteContext) -> Choice:
    """`choice`, or what becomes of it when it would use the cloud and a bucket does not hold that much."""
    needed, money, quota = sum(_cloud_use(choice.route, facts, context)), _money(choice.route, facts, context), context.quota
    if choice.route in ("edge", "refuse") or (blocking := quota.blocking(needed, money)) is None:
        return choice
    rule = blocking.rule if not quota.can_ever_admit(needed, money) or blocking.level in ("cloud", "store") else "quota.on_exhausted"
    why, wait = blocking.lack(needed, money), quota.wait_s(needed, money)
    if facts.edge_out is not None:
        return Choice("refuse", "over_quota", rule, f"{why}; {facts.edge_out.why}", rule, wait)
    if context.policy.quota.on_exhausted == "refuse":
        return Choice("refuse", "over_quota", rule, why, rule, wait)
    return Choice("edge", "quota_degraded", rule, f"{why}: the device answers instead", rule, wait)


def _cloud_use(route: Route, facts: Facts, context: RouteContext) -> tuple[int, int]:
    """Tokens of the prompt and of the answer that the cloud computes, at most: the device's answer may be part of the prompt."""
    draft = facts.output_tokens + DRAFT_TOKENS if route == "cascade" and context.policy.cascade.draft_as_context else 0
    return facts.prompt_tokens + draft, facts.output_tokens


def _money(route: Route, facts: Facts, context: RouteContext) -> float | None:
    """What the cloud would take for them; None: not known."""
    return cloud_price(facts.costs, *_cloud_use(route, facts, context))


def _wanted(facts: Facts, context: RouteContext) -> Choice:
    """Where the request should be answered if both sides could: as a rule says, else by its complexity."""
    return by_rule(facts.rule, facts.plan) or _by_complexity(facts, context)


def _redacted(choice: Choice, assessment: Assessment) -> Choice:
    """`choice`, and that the cloud does not get what was said but placeholders for some of it."""
    if not assessment.replaced or choice.route in ("edge", "refuse"):
        return choice
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(assessment.replaced.items()))
    return replace(choice, reason="redacted", why=f"{choice.why}; placeholders are sent for {told}")


def _by_complexity(facts: Facts, context: RouteContext) -> Choice:
    if facts.edge_weak is not None:
        return Choice("cloud", facts.edge_weak.reason, facts.edge_weak.rule, f"{facts.edge_weak.why}: the cloud answers")
    score, bands, drafting = facts.complexity, context.policy.complexity, context.policy.speculation
    of = f"; {facts.opinion.why}" if facts.opinion is not None else ""
    if score < bands.cascade_from:
        return Choice("edge", "simple", "complexity.cascade_from", f"complexity {score:.2f}, below {bands.cascade_from:.2f}{of}")
    if score < bands.hard_from:
        why = f"complexity {score:.2f}, between {bands.cascade_from:.2f} and {bands.hard_from:.2f}: the device first{of}"
        return Choice("cascade", "low_confidence", "complexity.hard_from", why)
    hard = f"complexity {score:.2f}, {bands.hard_from:.2f} or more{of}"
    if score < drafting.draft_below and facts.plan.mode == "sync":
        return Choice("speculative", "drafted", f"speculation.{drafting.mode}", f"{hard}, and drafting pays: {facts.plan.why}")
    return Choice("cloud", "hard", "complexity.hard_from", hard)
