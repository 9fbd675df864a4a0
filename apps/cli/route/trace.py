"""What every rule of a policy says of a request, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....router.decision import Decision
from ....router.rules import Traced

_WORDS = {True: "true", False: "false", None: "unknown"}


def trace_lines(decision: Decision, traced: Sequence[Traced]) -> list[str]:
    """One line per rule, in the order in which they are asked; those after the one that decides are shown too."""
    lines = []
    deciding = _deciding(decision)
    for number, one in enumerate(traced):
        effect = _effect(one, deciding, traced, number)
        label = "rules" if number == 0 else ""
        lines.append(f"{label:<11}{_WORDS[one.outcome.value]:<8} {one.rule.name}: {one.rule.when} -> {effect}{_why(one)}")
    return lines


def trace_json(decision: Decision, traced: Sequence[Traced]) -> dict[str, Any]:
    deciding = _deciding(decision)
    return {
        "rules": [
            {
                "name": one.rule.name,
                "result": _WORDS[one.outcome.value],
                "effect": _effect(one, deciding, traced, number),
                "missing": list(one.outcome.missing),
                "error": one.outcome.error or None,
            }
            for number, one in enumerate(traced)
        ]
    }


def _deciding(decision: Decision) -> str | None:
    """The rule that has matched, or refused; stages before it may still have had their way."""
    return decision.rules[-1].rule.name if decision.rules and decision.rules[-1].effect != "skip" else None


def _effect(one: Traced, deciding: str | None, traced: Sequence[Traced], number: int) -> str:
    if one.rule.name == deciding:
        return "refuse" if one.effect == "refuse" else one.rule.route
    after = deciding is not None and any(before.rule.name == deciding for before in traced[:number])
    return "not asked" if after else "skip"


def _why(one: Traced) -> str:
    if one.outcome.value is not None:
        return ""
    return f" ({', '.join(one.outcome.missing)} not known)" if one.outcome.missing else f" (cannot be computed: {one.outcome.error})"
