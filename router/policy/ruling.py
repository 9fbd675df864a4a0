"""What the rule that decides makes of a request, and how it binds the stages that came before it."""

from __future__ import annotations

from dataclasses import replace

from ..decision import Choice, Reason
from ..plan import Plan
from .rule import RuleRoute, shown
from .rules import Traced

# The reasons of a decision are a closed list: that of a rule is the one its route usually has; the rule itself is named beside it.
REASONS: dict[RuleRoute, Reason] = {
    "edge": "simple",
    "cloud": "hard",
    "cascade": "low_confidence",
    "speculative": "drafted",
    "refuse": "blocked",
}


def by_rule(traced: Traced | None, plan: Plan) -> Choice | None:
    """What the deciding rule wants. Drafting that is impossible leaves its text to the cloud, whose text it would have been."""
    if traced is None:
        return None
    rule, name = traced.rule, f"rule.{traced.rule.name}"
    if traced.effect == "refuse":
        return Choice("refuse", "blocked", name, f"{name} cannot be told: {_unknown(traced)}")
    why = f"{name}: {rule.reason or shown(rule)}"
    if traced.outcome.value is None:
        why = f"{why} (taken as true: {_unknown(traced)})"
    if rule.route == "speculative" and plan.mode != "sync":
        return Choice("cloud", "hard", name, f"{why}; {plan.why}: the cloud answers")
    return Choice(rule.route, REASONS[rule.route], name, why)


def bound_by(choice: Choice, traced: Traced | None, plan: Plan) -> Choice:
    """`choice` of all stages, unless the deciding rule allows nothing but its own route, which another stage has taken away."""
    if traced is None or choice.route == "refuse":
        return choice
    rule = traced.rule
    if traced.effect == "match" and (rule.route == choice.route or (rule.fallback and rule.route != "refuse")):
        return choice
    if traced.effect == "refuse" or rule.route == "refuse":  # a private request: no rule gives it away, but one may refuse it
        return by_rule(traced, plan) or choice
    name, reason = f"rule.{rule.name}", choice.reason
    if choice.rule == name:  # drafting that cannot be
        reason = "blocked"
    elif reason == "quota_degraded":
        reason = "over_quota"
    return replace(choice, route="refuse", reason=reason, rule=name, why=f"{name} allows {rule.route} only; {choice.why}")


def _unknown(traced: Traced) -> str:
    outcome = traced.outcome
    return f"{', '.join(outcome.missing)} not known" if outcome.missing else f"it cannot be computed ({outcome.error})"
