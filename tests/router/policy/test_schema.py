"""The published JSON schema says the same as the reader of policy files: the same keys, the same ranges."""

import json
import math
import tomllib
from importlib.resources import files
from typing import Any

import pytest
from click.testing import CliRunner
from hybrid.apps.cli.route import route
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.schema import policy_schema
from hybrid.shared_protocol.errors import ConfigError

jsonschema = pytest.importorskip("jsonschema", reason="the extra dev is not installed")
FOLDER = files("hybrid.router.policy")
SCHEMA = policy_schema()
POLICIES = [file for folder in (FOLDER, FOLDER / "presets") if folder.is_dir() for file in folder.iterdir() if file.name.endswith(".toml")]


def valid(document: object) -> bool:
    return bool(jsonschema.Draft202012Validator(SCHEMA).is_valid(document))


def read(document: dict[str, Any]) -> bool:
    """Whether the reader takes the same document: JSON's values are TOML's here, but for how a table is written."""
    lines = []
    for name, values in document.items():
        for table in values if isinstance(values, list) else [values]:
            header = "" if not isinstance(table, dict) else f"[[{name}]]\n" if isinstance(values, list) else f"[{name}]\n"
            lines.append(header + "\n".join(f"{k} = {toml(v)}" for k, v in (table if isinstance(table, dict) else {name: table}).items()))
    try:
        Policy.parse("\n".join(lines))
    except ConfigError:
        return False
    return True


def toml(value: object) -> str:
    return str(value) if isinstance(value, float) else json.dumps(value)


def keys() -> list[tuple[str, str, dict[str, Any]]]:
    tables = {t: SCHEMA["$defs"][ref["$ref"].split("/")[-1]] for t, ref in SCHEMA["$defs"]["Policy"]["properties"].items() if "$ref" in ref}
    return [(table, key, said) for table, schema in tables.items() for key, said in schema["properties"].items()]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", POLICIES, ids=lambda file: file.name)
def test_every_policy_that_ships_fits_the_schema_and_is_read(file: Any) -> None:
    text = file.read_text(encoding="utf-8")
    assert valid(tomllib.loads(text))
    Policy.parse(text, file.name)


def test_every_key_has_a_meaning_and_the_default_of_the_default_file() -> None:
    defaults = tomllib.loads((FOLDER / "default.toml").read_text(encoding="utf-8"))
    assert {(table, key) for table, key, _ in keys()} == {(table, key) for table, values in defaults.items() for key in values}
    for table, key, said in keys():
        assert said["default"] == defaults[table][key] and said["description"].endswith("."), (table, key)


def test_every_number_has_both_bounds_and_the_reader_keeps_the_same() -> None:
    for table, key, said in keys():
        if said.get("type") not in ("integer", "number"):
            continue
        low, high = said["minimum"], said["maximum"]
        unit = 1 if said["type"] == "integer" else 1e-6
        for value, inside in ((low, True), (high, True), (low - unit, False), (high * (1 + 1e-9) + unit, False)):
            value = math.ceil(value) if said["type"] == "integer" else float(value)
            document = {table: {key: value}}
            if table == "complexity":  # its two keys bind each other
                document[table] = {"cascade_from": value, "hard_from": value}
            assert valid(document) is read(document) is inside, document


@pytest.mark.parametrize(
    "document",
    [
        {"quota": {"capacity": "7"}},
        {"quota": {"capacity": True}},
        {"quota": {"capacty": 7}},
        {"speed": {"x": 1}},
        {"privacy": {"email": "secret"}},
        {"privacy": {"unreadable": "public"}},
        {"privacy": {"topic_words": ["Upper"]}},
        {"privacy": {"topic_words": ["a b c d e"]}},
        {"speculation": {"mode": "on"}},
        {"rule": [{"name": "a", "when": "code"}]},
        {"rule": [{"name": "a b", "when": "code", "route": "edge"}]},
        {"rule": [{"name": "a", "when": "code", "route": "nowhere"}]},
        {"rule": [{"name": "a", "when": "code", "route": "edge", "priority": 1.5}]},
        {"rule": [{"name": "a", "when": "x" * 1001, "route": "edge"}]},
        {"rule": [{"name": "a", "when": "code", "route": "edge", "then": "cloud"}]},
        {"version": 3},
    ],
)
def test_what_the_reader_refuses_the_schema_refuses_too(document: dict[str, Any]) -> None:
    assert not valid(document) and not read(document)


def test_a_policy_of_rules_fits_the_schema_and_is_read() -> None:
    rule = {"name": "a", "when": "code", "route": "edge", "priority": -3, "unknown": "refuse", "fallback": False, "reason": "because"}
    document = {"version": "7", "rule": [rule, {"name": "b", "when": "!code", "route": "refuse"}]}
    assert valid(document) and read(document)


def test_the_command_prints_it() -> None:
    result = CliRunner().invoke(route, ["schema"])
    assert result.exit_code == 0 and json.loads(result.output) == json.loads(json.dumps(SCHEMA))
