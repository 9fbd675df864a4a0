"""Recording keeps decisions without text; replaying asks another policy about them."""

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.route import route
from hybrid.edge.client.recorder import Recorder
from hybrid.router.decide import decide
from hybrid.router.evaluate.replay import usual
from hybrid.router.policy.policy import Policy
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.errors import ConfigError, Conflict, InvalidRequest, NotFound

PROMPTS = ("What is the capital of France?", "Write a Python function that reverses a string.", "mail bob@example.com")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(route, [str(argument) for argument in arguments])


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    file, out = tmp_path / "prompts.jsonl", tmp_path / "recording.jsonl"
    file.write_text("".join(json.dumps({"prompt": prompt, "time": n}) + "\n" for n, prompt in enumerate(PROMPTS)))
    result = run("record", "--input", file, "--out", out)
    assert result.exit_code == 0 and "3 decisions written" in result.stderr
    assert isinstance(run("record", "--input", file, "--out", out).exception, Conflict)
    return out


def test_a_recording_holds_no_text_and_only_its_owner_reads_it(recording: Path) -> None:
    text = recording.read_text()
    assert not any(word in text for word in ("France", "Python", "bob", "reverses"))
    assert [json.loads(line)["time"] for line in text.splitlines()] == [0, 1, 2]
    for file in (recording, Path(f"{recording}.key")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_same_policy_changes_nothing_and_another_says_what(recording: Path, tmp_path: Path) -> None:
    same = json.loads(run("replay", "--input", recording, "--json").stdout)
    assert same["changed"] == 0 and same["input"] == {"file": "recording.jsonl", "rows": 3, "other_policies": 0}
    ours = tmp_path / "ours.toml"
    ours.write_text('[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[[rule]]\nname = "ann"\nwhen = "user == \'ann\'"\nroute = "edge"\n')
    result = run("replay", "--input", recording, "--policy", ours, "--json", "--fail-if", "changed > 50%")
    found = json.loads(result.stdout)
    assert result.exit_code == 6 and found["moves"] == {"edge -> cloud": 1, "cascade -> cloud": 1}  # the private one stays
    assert found["cloud_share"] == pytest.approx([1 / 3, 2 / 3]) and found["blind_rules"] == ["ann"]
    shown = run("replay", "--input", recording, "--policy", ours).output
    assert "2 of 3 decisions change" in shown and "as recorded" in shown and "ann" in shown


def test_what_is_no_recording_is_said(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"prompt": "swordfish"}\n')
    result = run("replay", "--input", tmp_path / "bad.jsonl")
    assert (
        isinstance(result.exception, InvalidRequest) and "bad.jsonl:1" in str(result.exception) and "swordfish" not in str(result.exception)
    )
    assert isinstance(run("replay", "--input", tmp_path / "none.jsonl").exception, NotFound)
    (tmp_path / "empty.jsonl").write_text("")
    assert isinstance(run("replay", "--input", tmp_path / "empty.jsonl").exception, InvalidRequest)


def test_a_recorder_goes_on_under_its_key_and_never_fails_an_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, request, context = tmp_path / "r.jsonl", RouteRequest.of("swordfish"), usual(Policy.default())
    for _ in range(2):
        recorder = Recorder(path, lambda: 1.0)
        recorder.record(request, context, decide(request, context))
        recorder.close()
    one, two = (json.loads(line) for line in path.read_text().splitlines())
    assert one == two and recorder.lost == 0
    recorder.record(request, context, decide(request, context))
    recorder.record(request, context, decide(request, context))
    assert recorder.lost == 2 and caplog.text.count("no longer recorded") == 1 and "swordfish" not in caplog.text


def test_a_recording_that_cannot_be_made_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot record"):
        Recorder(tmp_path / "none" / "r.jsonl", lambda: 1.0)
    (tmp_path / "r.jsonl.key").write_text("short")
    with pytest.raises(ConfigError, match="holds no key"):
        Recorder(tmp_path / "r.jsonl", lambda: 1.0)


def test_what_was_written_is_told_to_a_program_as_json(tmp_path: Path) -> None:
    file, out = tmp_path / "prompts.jsonl", tmp_path / "recording.jsonl"
    file.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in PROMPTS))
    told = json.loads(run("record", "--input", file, "--out", out, "--json").stdout)
    assert told == {
        "out": str(out),
        "key": f"{out}.key",
        "policy": Policy.default().hash,
        "written": 3,
        "lost": 0,
        "routes": {"edge": 2, "cascade": 1},
    }
