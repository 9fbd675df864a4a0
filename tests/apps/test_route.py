"""`hybrid route` explains one prompt: the same decision as serving would make, nothing sent, exit code 0 also for a refusal."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.route import route
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.device_state import SimulatedDevice
from hybrid.router.decide import decide
from hybrid.router.plan import SpeculationFacts
from hybrid.router.policy.policy import Policy
from hybrid.router.quota import QuotaView
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.errors import ConfigError, InvalidRequest, NotFound, RouteRefused
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.runtime import LinkState
from hybrid.tests.support.scripted_client import ask, well
from hybrid.tests.support.scripted_server import scripted_server

HARD = "Design and implement a lock-free queue in Rust, prove that it is linearizable, and analyse its complexity step by step."


def run(*arguments: str, **options: object) -> Result:
    return CliRunner().invoke(route, arguments, **options)  # type: ignore[arg-type]


def printed(*arguments: str, **options: object) -> dict:
    result = run(*arguments, "--json", **options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_it_prints_one_json_object() -> None:
    found = printed("What is the capital of France?")
    assert list(found) == ["route", "reason", "rule", "scores", "expected", "provenance"]
    assert (found["route"], found["reason"], found["rule"]) == ("edge", "simple", "complexity.cascade_from")
    assert found["provenance"] == {"policy_hash": Policy.default().hash, "tokens": "estimated", "calibration_id": None}


@pytest.mark.parametrize("prompt", ["Hello", HARD, "mail bob@example.com", "AKIAIOSFODNN7EXAMPLE"])
def test_the_dry_run_decides_as_serving_does(prompt: str) -> None:
    limits = Policy.default().quota
    context = RouteContext(
        link=LinkState(reachable=True),
        quota=QuotaView(limits.capacity, limits.capacity, limits.refill_per_s),
        speculation=SpeculationFacts(),
    )
    assert printed(prompt) == json.loads(decide(RouteRequest.of(prompt), context).to_json())


SERVED = """
[complexity]
cascade_from = 0.5
hard_from = 0.5
[privacy]
phone = "redact"
[[rule]]
name = "long"
when = "tokens > 120"
route = "cloud"
"""


async def test_what_is_served_is_what_the_dry_run_said(smollm2: Model, smollm2_path: Path, tmp_path: Path) -> None:
    """The same request and policy, once explained and once answered, by the same route for the same reason."""
    file = tmp_path / "ours.toml"
    file.write_text(SERVED)
    prompts = ["Hello", HARD, "mail bob@example.com", "AKIAIOSFODNN7EXAMPLE", f"{HARD} Call me: +44 20 7946 0958", "go " * 200]
    seen = []
    options = {"context": 512, "device_state": SimulatedDevice(), "probe_timeout_s": 60}
    async with scripted_server(well) as server, AsyncHybridClient(smollm2, server.url, policy=file, **options) as client:  # type: ignore[arg-type]
        for prompt in prompts:
            said = printed(prompt, "--policy", str(file), "--model", str(smollm2_path), "--max-tokens", "2")
            try:
                info = (await ask(client, [{"role": "user", "content": prompt}], max_tokens=2)).hybrid
            except RouteRefused as refused:
                assert (said["route"], said["reason"], said["rule"]) == ("refuse", refused.code, refused.rule)
            else:
                assert info is not None
                assert [said[key] for key in ("route", "reason", "rule")] == [info.route, info.reason, info.rule]
                assert (said["provenance"]["policy_hash"], said.get("replaced")) == (info.policy, info.redacted)
            seen.append((said["route"], said["reason"], said["rule"].partition(".")[0]))
    assert seen == [
        ("edge", "simple", "complexity"),
        ("cloud", "hard", "complexity"),
        ("edge", "private", "privacy"),
        ("refuse", "blocked", "privacy"),
        ("cloud", "redacted", "complexity"),
        ("cloud", "hard", "rule"),
    ]


def test_a_person_reads_aligned_lines() -> None:
    result = run(HARD)
    lines = dict(line.split(maxsplit=1) for line in result.output.splitlines())
    assert result.exit_code == 0
    assert list(lines) == ["route", "reason", "rule", "why", "privacy", "complexity", "bands", "tokens", "drafting", "policy"]
    assert lines["route"] == "cloud" and lines["reason"] == "hard"
    assert lines["complexity"].startswith("################.... 0.8") and "reasoning" in lines["complexity"]
    assert "estimated" in lines["tokens"]


def test_a_refusal_is_an_explanation() -> None:
    result = run("What does AKIAIOSFODNN7EXAMPLE open?")
    assert result.exit_code == 0
    assert "refuse" in result.output and "blocked" in result.output and "1 secret" in result.output
    assert "AKIA" not in result.output


def test_the_prompt_comes_from_standard_input_or_a_file_of_messages(tmp_path: Path) -> None:
    assert printed("-", input="mail bob@example.com")["reason"] == "private"
    file = tmp_path / "conversation.json"
    messages = [{"role": "user", "content": HARD}, {"role": "assistant", "content": "..."}, {"role": "user", "content": "continue"}]
    for body in (messages, {"messages": messages, "model": "x"}):
        file.write_text(json.dumps(body))
        assert printed("--messages", str(file))["reason"] == "hard"


def test_a_policy_file_and_missing_sides_change_the_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('[speculation]\nmode = "always"\ndraft_below = 1.0')
    assert printed(HARD, "--policy", str(file))["reason"] == "drafted"
    monkeypatch.setenv("HYBRID_POLICY", str(file))
    assert printed(HARD)["reason"] == "drafted"
    assert printed(HARD, "--no-cloud")["reason"] == "cloud_unreachable"
    assert printed("Hello", "--no-device")["reason"] == "edge_unavailable"


def test_a_request_beyond_the_whole_quota_shows_it(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text("[quota]\ncapacity = 100")
    assert printed(HARD, "--policy", str(file), "--max-tokens", "200", "--user", "ann")["reason"] == "quota_degraded"


@pytest.mark.parametrize("arguments", [["explain"], ["hi", "--messages", "x.json"], ["hi", "--max-tokens", "0"], ["hi", "--what"]])
def test_wrong_usage_is_said(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2 and "Error" in result.output


def test_bad_input_is_a_typed_error(tmp_path: Path) -> None:
    assert isinstance(run("-", input=b"\xff").exception, InvalidRequest)
    assert isinstance(run("hi", "--user", "").exception, InvalidRequest)
    (tmp_path / "bad.json").write_text('{"message": []}')
    assert "bad.json is an object without messages" in str(run("--messages", str(tmp_path / "bad.json")).exception)
    for text in ("{", "{}", "3", "[]", '[{"role": "user", "content": 3}]', "[" * 100_000):
        (tmp_path / "bad.json").write_text(text)
        assert isinstance(run("--messages", str(tmp_path / "bad.json")).exception, InvalidRequest)
    assert isinstance(run("hi", "--policy", str(tmp_path / "none.toml")).exception, ConfigError)
    assert isinstance(run("--messages", str(tmp_path / "none.json")).exception, NotFound)


REDACTED = f"Write to jane@example.com and bob@example.com. {HARD}"


@pytest.fixture
def redacting(tmp_path: Path) -> str:
    policy = tmp_path / "ours.toml"
    policy.write_text('[privacy]\nemail = "redact"\n')
    return str(policy)


def test_what_would_be_redacted_is_shown_as_kinds_and_counts(redacting: str) -> None:
    result = run("--policy", redacting, REDACTED)
    assert "\nredacted   placeholders for 2 email\n" in result.output
    assert "\nreason     redacted\n" in result.output
    assert "[EMAIL_1_" not in result.output and "example.com" not in result.output
    assert "redacted   placeholders for 2 email, if it were sent\n" in run("--policy", redacting, "--no-cloud", REDACTED).output
    found = printed("--policy", redacting, REDACTED)
    assert (found["reason"], found["scores"]["privacy"], found["replaced"]) == ("redacted", "redact", {"email": 2})


def test_the_prompt_with_its_placeholders_is_shown_when_asked_for(redacting: str) -> None:
    result = run("--policy", redacting, "--show-redacted", REDACTED)
    shown = result.output.splitlines()[-1]
    assert re.fullmatch(r"user: Write to \[EMAIL_1_[a-z]{8}\] and \[EMAIL_2_[a-z]{8}\]\. " + re.escape(HARD), shown)
    assert run("--policy", redacting, "--show-redacted", REDACTED).output == result.output
    sent = printed("--policy", redacting, "--show-redacted", REDACTED)["sent"]
    assert shown == f"user: {sent['messages'][0]['content']}"
    assert run("--show-redacted", REDACTED).output.endswith("\nNothing of it may be sent.\n")
    assert printed("--show-redacted", REDACTED)["sent"] is None
