"""What is odd about a policy that loads: rules that never decide, keys that nothing reads, and, over prompts, overlaps and gaps.

An error stops a policy from being loaded; all that is found here is a warning.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from ..decide import scene_of
from ..redact.mapping import RedactionMapping
from ..request import RouteContext, RouteRequest
from .expression_types import always_false
from .policy import Policy
from .policy_file import line_of, line_of_rule
from .rules import CompiledRule, Traced, trace_all
from .tables import ConfidencePolicy
from .variables import VARIABLES, Values

CODES = (
    "rule-never",
    "rule-shadowed",
    "rule-unmatched",
    "rule-unknown",
    "rule-fails",
    "rules-overlap",
    "rules-gap",
    "key-unused",
    "detector-fails",
    "file-missing",
)


@dataclass(frozen=True, slots=True)
class Warned:
    """`code` is one of CODES, and stable; `line` is 0 for what no line is at fault for."""

    code: str
    key: str
    message: str
    line: int = 0


@dataclass(slots=True)
class Coverage:
    """What the rules said of some prompts."""

    prompts: int = 0
    unmatched: int = 0  # no rule decided
    decided: Counter[str] = field(default_factory=Counter)
    true: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)  # of the unknown ones, those that could not be computed
    missing: dict[str, set[str]] = field(default_factory=dict)  # what was not known, by rule
    overlaps: Counter[tuple[str, str]] = field(default_factory=Counter)  # both true, with different routes; the first decides


def lint_policy(policy: Policy, text: str) -> list[Warned]:
    """Warnings that need no prompts. `text`: the file that `policy` was read from."""
    return [*_rules(policy, text), *_unused(policy, tomllib.loads(text), text), *_detectors(policy, text), *_files(policy, text)]


def cover(policy: Policy, requests: Iterable[RouteRequest], context: RouteContext) -> Coverage:
    """Ask every rule about every request, in the surroundings of `context`, whose policy is not looked at."""
    found = Coverage()
    for request in requests:
        values = Values(scene_of(request, replace(context, policy=policy, redaction=RedactionMapping.of_a_dry_run())))
        _count(trace_all(policy.compiled_rules, values), found)
    return found


def lint_coverage(policy: Policy, text: str, found: Coverage) -> list[Warned]:
    """Warnings of what rules did over prompts."""
    warned = []
    for one in policy.compiled_rules:
        name, line = one.rule.name, line_of_rule(text, one.number, "when")
        if found.errors[name]:
            why = f"could not be computed for {found.errors[name]} of {found.prompts} prompts"
            warned.append(Warned("rule-fails", f"rule.{name}", why, line))
        if found.decided[name]:
            continue
        if found.true[name]:
            why = f"is true for {found.true[name]} of {found.prompts} prompts, but an earlier rule always decides"
            warned.append(Warned("rule-shadowed", f"rule.{name}", why, line))
        elif found.prompts and found.unknown[name] == found.prompts:
            missing = ", ".join(sorted(found.missing.get(name, ()))) or "its values"
            warned.append(Warned("rule-unknown", f"rule.{name}", f"was never told: {missing} not known (give --fact)", line))
        else:
            warned.append(Warned("rule-unmatched", f"rule.{name}", f"decides none of {found.prompts} prompts", line))
    compiled = {one.rule.name: one for one in policy.compiled_rules}
    for (first, second), count in found.overlaps.most_common():
        if compiled[second].when.constant or compiled[first].rule.priority != compiled[second].rule.priority:
            continue  # a catch-all, or an order that was meant
        why = f"is true together with rule.{second} for {count} of {found.prompts} prompts, and decides; their routes differ"
        warned.append(Warned("rules-overlap", f"rule.{first}", why, line_of_rule(text, compiled[first].number, "when")))
    if policy.rules and found.unmatched:
        why = f"tables decide {found.prompts - found.unmatched} of {found.prompts} prompts; the others go by their complexity"
        warned.append(Warned("rules-gap", "rule", why))
    return warned


def _count(traced: Sequence[Traced], found: Coverage) -> None:
    found.prompts += 1
    matching = [one for one in traced if one.outcome.value]
    deciding = next((one.rule.name for one in traced if one.effect != "skip"), None)
    if deciding is None:
        found.unmatched += 1
    else:
        found.decided[deciding] += 1
    for one in traced:
        found.true[one.rule.name] += one.outcome.value is True
        found.unknown[one.rule.name] += one.outcome.value is None
        found.errors[one.rule.name] += bool(one.outcome.error)
        found.missing.setdefault(one.rule.name, set()).update(one.outcome.missing)
    for first, second in combinations(matching, 2):
        if first.rule.route != second.rule.route and first.rule.name == deciding:
            found.overlaps[first.rule.name, second.rule.name] += 1


def _rules(policy: Policy, text: str) -> list[Warned]:
    warned = []
    seen: dict[str, CompiledRule] = {}
    for one in policy.compiled_rules:
        rule, key, line = one.rule, f"rule.{one.rule.name}", line_of_rule(text, one.number, "when")
        earlier = seen.setdefault(" ".join(rule.when.split()), one)
        if earlier is not one and (rule.unknown == "skip" or earlier.rule.unknown != "skip"):
            warned.append(
                Warned("rule-shadowed", key, f"never decides: rule.{earlier.rule.name} has the same condition and comes first", line)
            )
        elif one.when.constant is False:
            warned.append(Warned("rule-never", key, "is always false", line))
        elif always_false(one.when, {name: VARIABLES[name].samples for name in one.when.names}):
            warned.append(Warned("rule-never", key, "was false for everything that was tried", line))
        if rule.unknown != "skip" and not one.when.names:
            warned.append(
                Warned("rule-unknown", key, "says what unknown means, but needs no value", line_of_rule(text, one.number, "unknown"))
            )
    return warned


def _unused(policy: Policy, written: dict[str, Any], text: str) -> list[Warned]:
    """Keys of the file that change nothing, given the others."""
    unused: list[tuple[str, str, str]] = []
    routes = {one.rule.route for one in policy.compiled_rules}
    bands, drafting, quota = policy.complexity, policy.speculation, policy.quota
    if any(one.when.constant for one in policy.compiled_rules):
        unused += [("complexity", key, "a rule that is always true decides before it") for key in written.get("complexity", {})]
    if bands.cascade_from == bands.hard_from and "cascade" not in routes:
        why = "complexity.cascade_from and hard_from leave no room for a cascade, and no rule asks for one"
        unused += [("confidence", key, why) for key in written.get("confidence", {})]
    else:
        unused += [("confidence", key, why) for key, why in _unused_confidence(policy.confidence) if key in written.get("confidence", {})]
    if drafting.mode == "off":
        why = 'speculation.mode is "off"'
        unused += [("speculation", key, why) for key in written.get("speculation", {}) if key != "mode"]
    elif drafting.draft_below <= bands.hard_from and "draft_below" in written.get("speculation", {}) and "speculative" not in routes:
        unused.append(("speculation", "draft_below", "it lies below complexity.hard_from: nothing is drafted"))
    if quota.capacity == 0:
        why = "quota.capacity is 0: nothing goes to the cloud"
        unused += [("quota", key, why) for key in written.get("quota", {}) if key in ("refill_per_s", "assumed_output")]
    if policy.privacy.topic == "public":
        why = 'privacy.topic is "public"'
        unused += [("privacy", key, why) for key in ("topic_words", "more_topic_words") if written.get("privacy", {}).get(key)]
    return [Warned("key-unused", f"{table}.{key}", f"changes nothing: {why}", line_of(text, table, key)) for table, key, why in unused]


def _unused_confidence(judged: ConfidencePolicy) -> list[tuple[str, str]]:
    if judged.signal == "none":
        return [(key, 'confidence.signal is "none"') for key in judged.__struct_fields__ if key != "signal"]
    unused = []
    if judged.signal != "agreement":
        unused.append(("samples", 'only confidence.signal = "agreement" draws more answers'))
    if judged.error_rate > 0 and judged.gate:
        unused.append(("threshold", "confidence.error_rate decides"))
    elif judged.error_rate > 0:
        unused.append(("error_rate", "only a gate can promise it, and confidence.gate names none"))
    return unused


def _detectors(policy: Policy, text: str) -> list[Warned]:
    """Plug-ins that do not load here: with one of them every text is unreadable, and no prompt leaves the device."""
    from ..detect.plugin import load

    warned = []
    for name in policy.privacy.detectors:
        try:
            loaded = load(name)
        except Exception:  # whatever a plug-in raises
            loaded = "crashed"
        if isinstance(loaded, str):
            why = f"{name} is {loaded} on this machine: every text is unreadable, and no prompt goes to the cloud"
            warned.append(Warned("detector-fails", "privacy.detectors", why, line_of(text, "privacy", "detectors")))
    return warned


def _files(policy: Policy, text: str) -> list[Warned]:
    """A gate that is not there: a policy goes by its name until the device's model is known. A learned router is read with the policy."""
    gate = policy.confidence.gate
    if not gate or Path(gate).is_file():
        return []
    why = f"{gate} is no file on this machine: a client with a device refuses to begin"
    return [Warned("file-missing", "confidence.gate", why, line_of(text, "confidence", "gate"))]
