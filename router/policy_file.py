"""Reading a policy file: every key is known and in range, or the error names the file, the line and the dotted key."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from ..shared_protocol.errors import ConfigError

Tables = dict[str, dict[str, Any]]
Rule = Callable[[Any], str | None]  # what the value should have been, or None when it is right


def _one_of(*words: str) -> Rule:
    wanted = " or ".join((", ".join(f'"{word}"' for word in words[:-1]), f'"{words[-1]}"'))
    return lambda value: None if isinstance(value, str) and value in words else wanted


def _number(low: float, high: float = math.inf) -> Rule:
    wanted = f"a number between {low:g} and {high:g}" if high < math.inf else f"a finite number, {low:g} or more"

    def rule(value: Any) -> str | None:
        right = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and low <= value <= high
        return None if right else wanted

    return rule


def _integer(low: int, high: int) -> Rule:
    def rule(value: Any) -> str | None:
        right = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if right else f"a whole number between {low} and {high}"

    return rule


def _phrases(value: Any) -> str | None:
    right = isinstance(value, list) and len(value) <= 10_000
    right = right and all(isinstance(v, str) and v == v.lower().strip() and 0 < len(v) <= 100 and len(v.split()) <= 4 for v in value)
    return None if right else "a list of words or phrases of up to four words, in lower case"


_UNIT = _number(0, 1)
_VERDICT = _one_of("public", "local_only", "block")
_MODES = ("auto", "always", "off")
_TOKENS = _integer(0, 2**40)

SCHEMA: Mapping[str, Mapping[str, Rule]] = {
    "privacy": {
        **dict.fromkeys(("email", "phone", "card", "iban", "ip", "secret", "topic"), _VERDICT),
        "unreadable": _one_of("local_only", "block"),
        "topic_words": _phrases,
        "max_characters": _integer(1, 10_000_000),
        "too_hard_from": _UNIT,
    },
    "complexity": {"cascade_from": _UNIT, "hard_from": _UNIT},
    "confidence": {"threshold": _UNIT, "quantile": _UNIT, "quantile_weight": _UNIT},
    "quota": {
        "capacity": _TOKENS,
        "refill_per_s": _number(0, 1e12),
        "assumed_output": _integer(1, 2**40),
        "on_exhausted": _one_of("degrade", "refuse"),
    },
    "edge": {"min_battery": _UNIT, "min_thermal_headroom": _UNIT, "max_prompt_tokens": _TOKENS},
    "speculation": {"mode": _one_of(*_MODES), "draft_below": _UNIT, "max_draft": _integer(1, 64), "min_gain": _number(1, 1e6)},
}


def parse(text: str, source: str) -> Tables:
    """The tables of a policy file. Raises ConfigError at the first key that is unknown, of a wrong type or out of range."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{source}: not TOML: {error}", hint="see router/default.toml for a file that is") from None
    for table, values in document.items():
        where = f"{source}:{line_of(text, table)}"
        if table == "rule":
            raise ConfigError(f"{where}: [[rule]] is not served yet", hint="use the thresholds of the tables " + ", ".join(SCHEMA))
        if table not in SCHEMA:
            raise ConfigError(f"{where}: unknown table [{table}]", param=table, hint="known: " + ", ".join(SCHEMA))
        if not isinstance(values, dict):
            raise ConfigError(f"{where}: {table} must be a table, found {_shown(values)}", param=table)
        for key, value in values.items():
            _check(text, source, table, key, value)
    return document


def _check(text: str, source: str, table: str, key: str, value: Any) -> None:
    dotted = f"{table}.{key}"
    where = f"{source}:{line_of(text, table, key)}"
    rule = SCHEMA[table].get(key)
    if rule is None:
        raise ConfigError(f"{where}: unknown key {dotted}", param=dotted, hint=f"known in [{table}]: " + ", ".join(SCHEMA[table]))
    if value == "redact" and table == "privacy":
        raise ConfigError(f'{where}: {dotted} = "redact" is not served yet', param=dotted, hint='"local_only" keeps it on the device')
    if wanted := rule(value):
        raise ConfigError(f"{where}: {dotted} must be {wanted}, found {_shown(value)}", param=dotted)


def overlay(defaults: Tables, tables: Tables, text: str, source: str) -> Tables:
    """`defaults` with the values of `tables` laid over. Raises ConfigError where the two contradict each other."""
    merged = {table: {**values, **tables.get(table, {})} for table, values in defaults.items()}
    bands = merged["complexity"]
    if bands["cascade_from"] > bands["hard_from"]:
        key = "cascade_from" if "cascade_from" in tables.get("complexity", {}) else "hard_from"
        raise ConfigError(
            f"{source}:{line_of(text, 'complexity', key)}: complexity.cascade_from = {bands['cascade_from']:g}"
            f" lies above complexity.hard_from = {bands['hard_from']:g}",
            param=f"complexity.{key}",
            hint="set both, cascade_from being the smaller",
        )
    return merged


def line_of(text: str, table: str, key: str | None = None) -> int:
    """The line, from 1, where `key` of `table` is written; the table's own line when the key is not found on one of its own."""
    current = ""
    found = 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[{1,2}\s*[\"']?([\w-]+)", line):
            current = header[1]
            if current == table and found == 1:
                found = number
        elif pair := re.match(r"\s*[\"']?([\w-]+)[\"']?(?:\s*\.\s*[\"']?([\w-]+)[\"']?)?\s*=", line):
            if key is not None and (current, pair[1], pair[2]) in ((table, key, None), ("", table, key)):
                return number
            if (current, pair[1]) == ("", table):
                found = number
    return found


def _shown(value: Any) -> str:
    return repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
