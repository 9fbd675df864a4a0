"""`hybrid route lint`, and what `explain` shows of rules: lines for people, one object for programs, exit codes for pipelines."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.route import route
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import ConfigError

RULES = """version = "7"
[[rule]]
name = "night"
when = "hour < 6"
route = "edge"
[[rule]]
name = "low"
when = "battery < 0.2"
route = "cloud"
priority = 1
reason = "spare the battery"
[[rule]]
name = "acme"
when = "tenant == 'acme'"
route = "refuse"
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(route, arguments)


@pytest.fixture
def policy(tmp_path: Path) -> str:
    (tmp_path / "ours.toml").write_text(RULES)
    return str(tmp_path / "ours.toml")


def explained(policy: str, *arguments: str) -> dict:
    result = run("What is the capital of France?", "--json", "--policy", policy, "--at", "2026-01-01T12:30", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_explain_shows_every_rule_with_its_value_and_what_it_did(policy: str) -> None:
    found = explained(policy)
    assert [(one["name"], one["result"], one["effect"], one["missing"]) for one in found["rules"]] == [
        ("low", "unknown", "skip", ["battery"]),
        ("night", "false", "skip", []),
        ("acme", "unknown", "skip", ["tenant"]),
    ]
    assert found["provenance"]["policy_version"] == "7" and found["provenance"]["policy_hash"] == Policy.load(policy).hash
    text = run("What is the capital of France?", "--policy", policy, "--at", "2026-01-01T03:00", "--fact", "battery=0.1").output
    assert "true     low: battery < 0.2 -> cloud" in text and "true     night: hour < 6 -> not asked" in text
    assert "unknown  acme: tenant == 'acme' -> not asked (tenant not known)" in text
    assert "values     battery 0.1, hour 3, tenant not known\n" in text
    assert "spare the battery" in text and f"{Policy.load(policy).hash} (7)" in text


def test_facts_tenant_and_time_are_as_given(policy: str) -> None:
    assert explained(policy, "--fact", "battery=0.1")["rule"] == "rule.low"
    assert explained(policy, "--tenant", "acme")["rule"] == "rule.acme"
    assert explained(policy, "--fact", "hour=3")["rule"] == "rule.night"
    result = run("hi", "--json", "--policy", policy, "--at", "2026-01-01T03:00")
    assert json.loads(result.output)["rule"] == "rule.night"


def test_every_fact_that_can_be_given_is_seen_by_rules(tmp_path: Path) -> None:
    values = {
        "battery": "0.1",
        "thermal_headroom": "0.1",
        "memory_mb": "100",
        "load": "0.5",
        "edge_available": "false",
        "reachable": "false",
    }
    values |= {"rtt_ms": "80", "price_in": "2", "price_out": "3", "hour": "3", "weekday": "6", "quota_left": "9000"}
    for name, value in values.items():
        when = (
            f"{name} == {value}"
            if value == "false" or name in ("hour", "weekday")
            else f"{name} > {value}.0 * 0.9 && {name} < {value}.0 * 1.1"
        )
        when = when.replace("0.1.0", "0.1").replace("0.5.0", "0.5")
        (tmp_path / "one.toml").write_text(f'[[rule]]\nname = "it"\nwhen = "{when}"\nroute = "refuse"\n')
        result = run("hi", "--json", "--policy", str(tmp_path / "one.toml"), "--fact", f"{name}={value}")
        assert json.loads(result.output)["rule"] == "rule.it", (name, result.output)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fact", "batery=1"], "did you mean battery?"),
        (["--fact", "battery"], "NAME=VALUE"),
        (["--fact", "battery=full"], "battery is a number"),
        (["--fact", "battery=nan"], "battery is a number"),
        (["--fact", "battery=20"], "from 0 to 1, such as battery=0.2"),
        (["--fact", "hour=3.5"], "hour is a whole number"),
        (["--fact", "reachable=yes"], "true or false"),
        (["--fact", "tokens=3"], "follows from the request"),
        (["--fact", "tenant=acme"], "takes --tenant; in a file of prompts give a row the key tenant"),
        (["--at", "noon"], "2026-01-01T03:00"),
    ],
)
def test_a_fact_that_cannot_be_is_wrong_usage(arguments: list[str], words: str) -> None:
    result = run("hi", *arguments)
    assert result.exit_code == 2 and words in result.output


def test_a_preset_stands_where_a_file_may() -> None:
    result = run("hi", "--json", "--policy", "preset:offline")
    assert json.loads(result.output)["rule"] == "rule.never-cloud"
    assert isinstance(run("hi", "--policy", "preset:none").exception, ConfigError)


def test_lint_exits_0_with_warnings_6_with_strict_and_5_with_errors(policy: str, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "What is the capital of France?"}\n{"prompt": "Tell me a joke"}\n')
    assert run("lint", "--policy", policy, "--strict").exit_code == 0
    assert run("lint", "--policy", policy, "--input", str(prompts)).exit_code == 0
    assert run("lint", "--policy", policy, "--input", str(prompts), "--strict").exit_code == 6
    unheeded = ("--ignore", "rules-gap", "--ignore", "rule-unmatched", "--ignore", "rule-unknown")
    assert run("lint", "--policy", policy, "--input", str(prompts), "--strict", *unheeded).exit_code == 0
    assert run("lint", "--policy", policy, "--ignore", "rule-odd").exit_code == 2
    at_noon = run("lint", "--policy", policy, "--input", str(prompts), "--at", "2026-01-01T12:00", "--fact", "battery=0.1", "--json")
    found = json.loads(at_noon.output)
    assert found["error"] is None and found["coverage"]["prompts"] == 2 and found["coverage"]["no_rule"] == 0
    assert [(one["name"], one["decided"], one["unknown"]) for one in found["coverage"]["rules"]] == [
        ("low", 2, 0),
        ("night", 0, 0),
        ("acme", 0, 2),
    ]
    assert {(one["code"], one["key"]) for one in found["warnings"]} == {("rule-unmatched", "rule.night"), ("rule-unknown", "rule.acme")}
    bad = tmp_path / "bad.toml"
    bad.write_text("[quota]\ncapacity = -1")
    error = run("lint", "--policy", str(bad)).exception
    assert isinstance(error, ConfigError) and error.exit_code == 5
    result = run("lint", "--policy", str(bad), "--json")
    assert result.exit_code == 5 and json.loads(result.output)["error"]["key"] == "quota.capacity"
    assert run("lint").exit_code == 2


def test_lint_names_file_and_line(policy: str, tmp_path: Path) -> None:
    odd = tmp_path / "odd.toml"
    odd.write_text('[[rule]]\nname = "a"\nwhen = "tokens < 0"\nroute = "edge"\n')
    output = run("lint", "--policy", str(odd)).output
    assert f"{odd}:3: rule.a was false for everything that was tried [rule-never]" in output
    assert "warnings: 1" in output
    assert run("lint", "--policy", "preset:fastest", "--strict").exit_code == 0


def test_rows_say_for_whom_they_ask(policy: str, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "Tell me a joke", "tenant": "acme"}\n{"prompt": "Tell me a joke", "tenant": "other"}\n')
    told = run("lint", "--policy", policy, "--input", str(prompts), "--at", "2026-01-01T12:00", "--json")
    rules = {one["name"]: one for one in json.loads(told.output)["coverage"]["rules"]}
    assert rules["acme"]["decided"] == 1 and rules["acme"]["unknown"] == 0
