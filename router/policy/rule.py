"""One rule of a policy file: a condition over a request and its surroundings, and where what meets it is answered."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MAX_SHOWN = 120  # characters
RuleRoute = Literal["edge", "cloud", "cascade", "speculative", "refuse"]
Unknown = Literal["skip", "match", "refuse"]


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[rule]]`: the first rule whose condition is true decides the route, as far as privacy, capability and quota leave it."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64, description="A decision's rule is rule.NAME.")]
    when: Annotated[str, Meta(min_length=1, max_length=1_000, description="The condition, in CEL, over the variables of docs/policy.md.")]
    route: Annotated[RuleRoute, Meta(description="Where a request that meets it is answered.")]
    priority: Annotated[int, Meta(ge=-1_000_000, le=1_000_000, description="Higher ones first; equal ones in the file's order.")] = 0
    unknown: Annotated[
        Unknown,
        Meta(description="A condition that is neither true nor false, since a value is not known: skip the rule, match, or refuse."),
    ] = "skip"
    fallback: Annotated[
        bool,
        Meta(description="Where its route cannot be taken: true answers as without the rule, false refuses."),
    ] = True
    reason: Annotated[str, Meta(max_length=200, description="Why, for people. A decision's why repeats it.")] = ""


def shown(rule: Rule) -> str:
    """Its condition on one line, not too long a one."""
    when = " ".join(rule.when.split())
    return when if len(when) <= MAX_SHOWN else f"{when[:MAX_SHOWN]}..."
