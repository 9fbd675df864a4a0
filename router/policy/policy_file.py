"""Reading a policy file: every key is known and in range, or the error names the file, the line and the dotted key.

Which keys there are and what they may hold is said by the struct that the file is read for, and nowhere here.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

import msgspec
from msgspec import inspect

from ...shared_protocol.errors import ConfigError

Tables = dict[str, Any]  # a table's keys and values by its name; the rules as a list of such tables; the version


def parse(text: str, source: str, shape: type[msgspec.Struct]) -> Tables:
    """What a policy file says, for `shape`: a struct of structs, of one list of structs, and of plain values.

    Raises ConfigError at the first key that is unknown, missing or wrong.
    """
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{source}: not TOML: {error}", hint="see router/policy/default.toml for a file that is") from None
    tables = _types(shape)
    for table, values in document.items():
        where = f"{source}:{line_of(text, table)}"
        if table not in tables:
            raise ConfigError(f"{where}: unknown table [{table}]", param=table, hint=_known(table, list(tables), "known"))
        inner = _bare(tables[table])
        if isinstance(inner, inspect.VarTupleType) and isinstance(inner.item_type, inspect.StructType):
            if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
                raise ConfigError(f"{where}: {table} must be written as [[{table}]], found {_shown(values)}", param=table)
            for number, value in enumerate(values):
                _check_rule(text, source, number, value, inner.item_type.cls)
        elif not isinstance(inner, inspect.StructType):
            _check(where, table, values, tables[table])
        elif not isinstance(values, dict):
            raise ConfigError(f"{where}: {table} must be a table, found {_shown(values)}", param=table)
        else:
            types = _types(inner.cls)
            for key, value in values.items():
                dotted = f"{table}.{key}"
                where = f"{source}:{line_of(text, table, key)}"
                if key not in types:
                    hint = _known(key, list(types), f"known in [{table}]")
                    raise ConfigError(f"{where}: unknown key {dotted}", param=dotted, hint=hint)
                _check(where, dotted, value, types[key])
    return document


def _check_rule(text: str, source: str, number: int, values: dict[str, Any], shape: type[msgspec.Struct]) -> None:
    """`number` counts from 0; a rule without a usable name is called by it, from 1."""
    name = values.get("name")
    called = f"rule.{name if isinstance(name, str) and name.isprintable() and len(name) <= 64 else number + 1}"
    types = _types(shape)
    for key, value in values.items():
        where = f"{source}:{line_of_rule(text, number, key)}"
        if key not in types:
            hint = _known(key, list(types), "known in [[rule]]")
            raise ConfigError(f"{where}: unknown key {called}.{key}", param=f"{called}.{key}", hint=hint)
        _check(where, f"{called}.{key}", value, types[key])
    for field in msgspec.structs.fields(shape):
        if field.required and field.encode_name not in values:
            where, dotted = f"{source}:{line_of_rule(text, number)}", f"{called}.{field.encode_name}"
            raise ConfigError(f"{where}: {dotted} is missing", param=dotted, hint='a rule needs a name, when = "..." and a route')


def _check(where: str, dotted: str, value: Any, kind: Any) -> None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        wanted = _wanted(_bare(kind))
        said = f"must be {wanted}, found {_shown(value)}" if wanted else f"is wrong: {error}"
        raise ConfigError(f"{where}: {dotted} {said}", param=dotted) from None


def _types(shape: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(shape)}


def _known(word: str, words: list[str], label: str) -> str:
    """The words there are, the one that was probably meant first."""
    from difflib import get_close_matches

    near = get_close_matches(word, words, 1)
    return (f"did you mean {near[0]}? " if near else "") + f"{label}: " + ", ".join(words)


def _bare(kind: Any) -> inspect.Type:
    """A type without what is said about it."""
    info = inspect.type_info(kind)
    while isinstance(info, inspect.Metadata):
        info = info.type
    return info


def _wanted(info: inspect.Type) -> str | None:
    """What a value of this type looks like, in words; None for a table of tables, of which msgspec says more."""
    while isinstance(info, inspect.Metadata):
        info = info.type
    match info:
        case inspect.UnionType(types=types):
            words = [_wanted(one) for one in types]
            return " or ".join(word for word in words if word) if all(words) else None
        case inspect.NoneType():
            return "nothing"
        case inspect.LiteralType(values=words):
            *most, last = [f'"{word}"' for word in words]
            return f"{', '.join(most)} or {last}" if most else last
        case inspect.IntType(ge=low, le=high):
            return f"a whole number between {low} and {high}"
        case inspect.FloatType(ge=low, le=high):
            return f"a number between {low:g} and {high:g}"
        case inspect.VarTupleType(item_type=inspect.Metadata(extra_json_schema={"title": title})):
            return f"a list of {title}"
        case inspect.StrType(pattern=str(pattern), max_length=longest):
            return f"a text of up to {longest} characters like {pattern}"
        case inspect.StrType(min_length=least, max_length=longest):
            return f"a text of {least or 0} to {longest} characters"
        case inspect.BoolType():
            return "true or false"
    return None


def overlay(defaults: Tables, tables: Tables, text: str, source: str) -> Tables:
    """`defaults` with the values of `tables` laid over. Raises ConfigError where the two contradict each other."""
    merged = {**defaults, **tables}
    for table, values in defaults.items():
        if isinstance(values, dict):
            merged[table] = {**values, **tables.get(table, {})}
    bands = merged["complexity"]
    if bands["cascade_from"] > bands["hard_from"]:
        key = "cascade_from" if "cascade_from" in tables.get("complexity", {}) else "hard_from"
        raise ConfigError(
            f"{source}:{line_of(text, 'complexity', key)}: complexity.cascade_from = {bands['cascade_from']:g}"
            f" lies above complexity.hard_from = {bands['hard_from']:g}",
            param=f"complexity.{key}",
            hint="set both, cascade_from being the smaller",
        )
    if merged["speculation"]["mode"] == "off":
        for number, rule in enumerate(tables.get("rule", ())):
            if rule["route"] == "speculative":
                dotted = f"rule.{rule['name']}.route"
                where = f"{source}:{line_of_rule(text, number, 'route')}"
                raise ConfigError(f'{where}: {dotted} drafts, but speculation.mode is "off"', param=dotted, hint="drop one of the two")
    if merged["confidence"]["signal"] == "probe" and not merged["confidence"]["gate"]:
        where = f"{source}:{line_of(text, 'confidence', 'signal')}"
        raise ConfigError(
            f'{where}: confidence.signal is "probe", but confidence.gate names no gate that holds one',
            param="confidence.signal",
            hint="make one: hybrid route gate --signal probe",
        )
    for key in ("topic_words", "more_topic_words"):
        for word in merged["privacy"][key]:
            if word != word.lower().strip():  # a schema's pattern knows capital letters of ASCII only, and lets a last newline pass
                where, dotted = f"{source}:{line_of(text, 'privacy', key)}", f"privacy.{key}"
                raise ConfigError(f"{where}: {dotted} must be in lower case, found {_shown(word)}", param=dotted)
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


def line_of_rule(text: str, number: int, key: str | None = None) -> int:
    """The line, from 1, of `key` in the rule `number` (from 0), or of its header; that of `rule = [...]` where it is written so."""
    rule, found = -1, 0
    inside = False
    for line_number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[{1,2}\s*[\"']?([\w-]+)", line):
            inside = header[1] == "rule"
            rule += inside
            if inside and rule == number:
                found = line_number
        elif inside and rule == number and key is not None and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return line_number
    return found or line_of(text, "rule")


def _shown(value: Any) -> str:
    return repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
