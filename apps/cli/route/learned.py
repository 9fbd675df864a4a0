"""What `hybrid route explain` shows of a learned router: its chances, and what in the prompt moved its score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ....router.decision import Decision
from ....router.policy.policy import Policy
from ....router.request import RouteRequest

if TYPE_CHECKING:
    from ....router.learned.model import Model


def learned_lines(policy: Policy, request: RouteRequest, decision: Decision) -> list[str]:
    """For a person, who knows the prompt: its own words are shown."""
    if policy.learned_router is None or decision.opinion is None:
        return []
    from ....router.learned.explain import Part, explain

    def listed(parts: tuple[Part, ...]) -> str:
        return ", ".join(f"{part.words} {part.gain:+.3f}" for part in parts)

    found, about = explain(policy.learned_router, _looked_at(policy.learned_router, policy, request)), policy.learned_router.about
    chances = found.prediction
    lines = [
        ("learned", "abstains" if decision.opinion.score is None else f"score {decision.opinion.score:.2f}"),
        ("chances", f"device right {chances.p_edge:.0%}, cloud right {chances.p_cloud:.0%}, gain {chances.gain:+.3f}"),
        ("unknown", f"{chances.unknown:.2f}: 0 is like what it has learned from, 1 like none of it"),
        ("traits", listed(found.traits)),
        ("words", listed(found.terms)),
        ("router", f"{decision.opinion.id}, of {about.rows} outcomes ({about.data}){f', {about.trained}' if about.trained else ''}"),
    ]
    return [f"{name:<11}{value}" for name, value in lines]


def learned_json(policy: Policy, request: RouteRequest, decision: Decision) -> dict[str, Any]:
    """Without any word of the prompt."""
    if policy.learned_router is None or decision.opinion is None:
        return {}
    from ....router.learned.explain import trait_parts

    router = policy.learned_router
    parts = [{"says": part.words, "gain": part.gain} for part in trait_parts(router, _looked_at(router, policy, request))]
    return {"learned": msgspec.to_builtins(decision.opinion) | {"traits": parts}}


def _looked_at(router: Model, policy: Policy, request: RouteRequest) -> str:
    from ....router.learned.opinion import hardest
    from ....router.learned.traits import said

    return hardest(router, said(request), policy.learned.abstain_above)[0]
