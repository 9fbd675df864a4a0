"""The rules of a policy in the order in which they are asked: compiled at load, and refused there when they contradict each other.

Order: higher priority first; rules of equal priority as they stand in the file. The first whose condition is true decides. One whose
condition is unknown does as its `unknown` says: it is skipped, matches, or refuses the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...shared_protocol.errors import ConfigError
from .expression import FALSE, TRUE, Evaluator, Expression, ExpressionError, Outcome, compile_expression
from .expression_types import check_types
from .rule import Rule
from .variables import CLOSED, VARIABLES, Values

MAX_RULES = 200
MAX_PATTERNS = 10  # regular expressions in all rules
Where = Callable[[int, str], str]  # number of a rule in the file, from 0, and key -> what an error begins with
Effect = Literal["skip", "match", "refuse"]


@dataclass(frozen=True, slots=True)
class Traced:
    """What became of one rule: `effect` follows from the outcome and the rule's reading of unknown."""

    rule: Rule
    outcome: Outcome
    effect: Effect


@dataclass(frozen=True, slots=True)
class CompiledRule:
    rule: Rule
    number: int  # in the file, from 0
    when: Expression
    met: Traced  # what becomes of it when its condition is true
    unmet: Traced  # when it is false


def compile_rules(rules: Sequence[Rule], where: Where = lambda number, key: "policy") -> tuple[CompiledRule, ...]:
    """Check and order. Raises ConfigError at the first rule that is wrong, or that contradicts an earlier one."""
    if len(rules) > MAX_RULES:
        raise ConfigError(f"{where(MAX_RULES, 'name')}: {len(rules)} rules, up to {MAX_RULES} are served", param="rule")
    compiled = [_compile(rule, number, where) for number, rule in enumerate(rules)]
    patterns = 0
    for one in compiled:
        patterns += one.when.patterns
        if patterns > MAX_PATTERNS:
            _refuse(
                one, "when", where, f"is one of more than {MAX_PATTERNS} uses of matches()", "startsWith, endsWith and contains cost less"
            )
    ordered = sorted(compiled, key=lambda one: -one.rule.priority)  # stable: equal ones as they stand
    _check_contradictions(ordered, where)
    return tuple(ordered)


def first_match(rules: Sequence[CompiledRule], values: Values) -> tuple[Traced, ...]:
    """The rules up to the first that matches or refuses, that one being the last; all of them when none does. Never raises."""
    if not rules:
        return ()
    asked: list[Traced] = []
    evaluator = Evaluator(values.__getitem__)
    for one in rules:
        asked.append(traced := _trace(one, evaluator))
        if traced.effect != "skip":
            break
    return tuple(asked)


def deciding(asked: Sequence[Traced]) -> Traced | None:
    """Of what `first_match` gives, the rule that decides, if any does."""
    return asked[-1] if asked and asked[-1].effect != "skip" else None


def trace_all(rules: Sequence[CompiledRule], values: Values) -> tuple[Traced, ...]:
    """What every rule says, those after the first match included."""
    if not rules:
        return ()
    evaluator = Evaluator(values.__getitem__)
    return tuple(_trace(one, evaluator) for one in rules)


def _trace(one: CompiledRule, evaluator: Evaluator) -> Traced:
    outcome = evaluator.outcome(one.when)
    if outcome.value is None:
        return Traced(one.rule, outcome, one.rule.unknown)
    return one.met if outcome.value else one.unmet


def _compile(rule: Rule, number: int, where: Where) -> CompiledRule:
    try:
        when = compile_expression(rule.when)
        for name in when.names:
            if name not in VARIABLES:
                raise ExpressionError(f"names {name}, which is no variable", known_variables(name, rule.when))
        check_types(when, {name: VARIABLES[name].samples for name in when.names}, CLOSED)
    except ExpressionError as error:
        dotted = f"rule.{rule.name}.when"
        raise ConfigError(f"{where(number, 'when')}: {dotted} {error}", param=dotted, hint=error.hint) from None
    return CompiledRule(rule, number, when, Traced(rule, TRUE, "match"), Traced(rule, FALSE, "skip"))


def known_variables(name: str, source: str = "") -> str:
    """Which variables there are, first the one that was probably meant: battery for batery, and for device.battery."""
    from difflib import get_close_matches

    after_dot = [found for found in re.findall(rf"\b{re.escape(name)}\.(\w+)", source) if found in VARIABLES]
    near = after_dot or get_close_matches(name, VARIABLES, 1)
    return (f"did you mean {near[0]}? " if near else "") + "known: " + ", ".join(VARIABLES)


def _check_contradictions(ordered: Sequence[CompiledRule], where: Where) -> None:
    names: dict[str, CompiledRule] = {}
    conditions: dict[tuple[int, str], CompiledRule] = {}
    always: CompiledRule | None = None
    for one in ordered:
        rule, condition = one.rule, (one.rule.priority, _normal(one.rule.when))
        if rule.name in names:
            later = max(one, names[rule.name], key=lambda found: found.number)
            _refuse(later, "name", where, "is the name of two rules", "a decision names its rule: give each its own")
        if (other := conditions.get(condition)) is not None and other.rule.route != rule.route:
            why = f"has the condition and the priority of rule.{other.rule.name}, but another route"
            _refuse(one, "when", where, why, "give one of them a higher priority, or drop it")
        if always is not None:
            _refuse(one, "when", where, f"is never asked: rule.{always.rule.name} before it is always true", "lower that one's priority")
        names[rule.name] = conditions[condition] = one
        always = one if one.when.constant else None


def _normal(source: str) -> str:
    """A condition without what does not matter: spaces beyond one. Two that mean the same otherwise are for `hybrid route lint`."""
    return " ".join(source.split())


def _refuse(one: CompiledRule, key: str, where: Where, what: str, hint: str) -> None:
    dotted = f"rule.{one.rule.name}.{key}"
    raise ConfigError(f"{where(one.number, key)}: {dotted} {what}", param=dotted, hint=hint)
