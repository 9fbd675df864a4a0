"""What every rule of a policy says of a request, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....router.decision import Decision
from ....router.policy.expression import Value
from ....router.policy.rule import shown
from ....router.policy.rules import CompiledRule, Traced, deciding
from ....router.policy.variables import Values

_WORDS = {True: "true", False: "false", None: "unknown"}


def trace_lines(decision: Decision, traced: Sequence[Traced]) -> list[str]:
    """One line per rule, in the order in which they are asked; those after the one that decides are shown too."""
    lines = []
    decides = deciding(decision.rules)
    for number, one in enumerate(traced):
        effect = _effect(one, decides, traced, number)
        label = "rules" if number == 0 else ""
        lines.append(f"{label:<11}{_WORDS[one.outcome.value]:<8} {one.rule.name}: {shown(one.rule)} -> {effect}{_why(one)}")
    return lines


def value_lines(rules: Sequence[CompiledRule], values: Values) -> list[str]:
    """What the variables that the rules name are for this request, in one line; none without rules."""
    names = dict.fromkeys(name for one in rules for name in one.when.names)
    return [f"{'values':<11}{', '.join(f'{name} {_value(values[name])}' for name in names)}"] if names else []


def _value(value: Value | None) -> str:
    if value is None:
        return "not known"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def trace_json(decision: Decision, traced: Sequence[Traced]) -> dict[str, Any]:
    decides = deciding(decision.rules)
    return {
        "rules": [
            {
                "name": one.rule.name,
                "result": _WORDS[one.outcome.value],
                "effect": _effect(one, decides, traced, number),
                "missing": list(one.outcome.missing),
                "error": one.outcome.error or None,
            }
            for number, one in enumerate(traced)
        ]
    }


def _effect(one: Traced, decides: Traced | None, traced: Sequence[Traced], number: int) -> str:
    """Stages before the rules may still have had their way."""
    if decides is not None and one.rule is decides.rule:
        return "refuse" if one.effect == "refuse" else one.rule.route
    after = decides is not None and any(before.rule is decides.rule for before in traced[:number])
    return "not asked" if after else "skip"


def _why(one: Traced) -> str:
    if one.outcome.value is not None:
        return ""
    return f" ({', '.join(one.outcome.missing)} not known)" if one.outcome.missing else f" (cannot be computed: {one.outcome.error})"
