"""Reading a policy file: every key is known and in range, or the error names the file, the line and the dotted key.

Which keys there are and what they may hold is said by the struct that the file is read for, and nowhere here.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

import msgspec
from msgspec import inspect

from ..shared_protocol.errors import ConfigError

Tables = dict[str, dict[str, Any]]


def parse(text: str, source: str, shape: type[msgspec.Struct]) -> Tables:
    """The tables of a policy file for `shape`, a struct of structs. Raises ConfigError at the first key that is unknown or wrong."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{source}: not TOML: {error}", hint="see router/default.toml for a file that is") from None
    tables = _types(shape)
    for table, values in document.items():
        where = f"{source}:{line_of(text, table)}"
        if table == "rule":
            raise ConfigError(f"{where}: [[rule]] is not served yet", hint="use the thresholds of the tables " + ", ".join(tables))
        if table not in tables:
            raise ConfigError(f"{where}: unknown table [{table}]", param=table, hint=_known(table, list(tables), "known"))
        if not isinstance(values, dict):
            raise ConfigError(f"{where}: {table} must be a table, found {_shown(values)}", param=table)
        types = _types(tables[table])
        for key, value in values.items():
            dotted = f"{table}.{key}"
            where = f"{source}:{line_of(text, table, key)}"
            if key not in types:
                hint = _known(key, list(types), f"known in [{table}]")
                raise ConfigError(f"{where}: unknown key {dotted}", param=dotted, hint=hint)
            try:
                msgspec.convert(value, types[key])
            except msgspec.ValidationError:
                found = _shown(value)
                raise ConfigError(f"{where}: {dotted} must be {_wanted(types[key])}, found {found}", param=dotted) from None
    return document


def _types(shape: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(shape)}


def _known(word: str, words: list[str], label: str) -> str:
    """The words there are, the one that was probably meant first."""
    from difflib import get_close_matches

    near = get_close_matches(word, words, 1)
    return (f"did you mean {near[0]}? " if near else "") + f"{label}: " + ", ".join(words)


def _wanted(kind: Any) -> str:
    """What a value of this type looks like, in words."""
    info = inspect.type_info(kind)
    while isinstance(info, inspect.Metadata):
        info = info.type
    match info:
        case inspect.LiteralType(values=words):
            *most, last = [f'"{word}"' for word in words]
            return f"{', '.join(most)} or {last}" if most else last
        case inspect.IntType(ge=low, le=high):
            return f"a whole number between {low} and {high}"
        case inspect.FloatType(ge=low, le=high):
            return f"a number between {low:g} and {high:g}"
        case inspect.VarTupleType(item_type=inspect.Metadata(extra_json_schema={"title": title})):
            return f"a list of {title}"
        case inspect.StrType(max_length=longest):
            return "a text" if longest is None else f"a text of up to {longest} characters"
        case inspect.BoolType():
            return "true or false"
    return f"what the JSON schema says ({type(info).__name__.removesuffix('Type').lower()})"


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
    for word in merged["privacy"]["topic_words"]:
        if word != word.lower().strip():  # a schema's pattern knows capital letters of ASCII only, and lets a last newline pass
            where = f"{source}:{line_of(text, 'privacy', 'topic_words')}"
            raise ConfigError(f"{where}: privacy.topic_words must be in lower case, found {_shown(word)}", param="privacy.topic_words")
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
