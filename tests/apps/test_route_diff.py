"""`hybrid route diff` and `calibrate`: which prompts change and why; a threshold for a wish, measured on prompts it was not fitted on."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.route import route
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import CannotPromise, Conflict
from hybrid.tests.apps.test_route_test import TASKS, outcomes, run  # noqa: F401  (a fixture)


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    file = tmp_path / "ours.toml"
    file.write_text("[complexity]\ncascade_from = 0.99\nhard_from = 0.99\n")
    return file


def test_diff_counts_the_moves_and_their_causes_by_ids(outcomes: Path, ours: Path) -> None:  # noqa: F811
    result = run("diff", "default", ours, "--input", outcomes, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0 and found["count"] == len(found["changes"]) == sum(found["moves"].values()) == 80
    assert found["changed"] == pytest.approx(80 / 120) and found["cloud_share"][1] == 0
    change = found["changes"][0]
    assert change["id"] == "row-0" and change["before"]["route"] != change["after"]["route"] == "edge"
    assert change["after"]["rule"] == "complexity.cascade_from" and "Prove" not in result.output
    assert found["accuracy_change"] < 0 and len(found["ci95"]["accuracy_change"]) == 2


def test_diff_shows_prompts_only_when_asked_and_gates_what_changed(outcomes: Path, ours: Path) -> None:  # noqa: F811
    result = run("diff", "default", ours, "--input", outcomes, "--fail-if", "changed > 5%")
    assert result.exit_code == 6 and "80 of 120 prompts change their route (66.7%)" in result.output and "Prove" not in result.output
    assert "changed > 5%: failed" in result.stderr and "and 60 more" in result.output
    assert "Prove step by step" in run("diff", "default", ours, "--input", outcomes, "--show-prompts").output
    shown = json.loads(run("diff", "default", ours, "--input", outcomes, "--show-prompts", "--json").stdout)
    assert shown["changes"][0]["prompt"] == TASKS[0].format(0)
    same = run("diff", "default", "preset:private-first", "--input", outcomes, "--fail-if", "changed > 100%", "--limit", 0)
    assert same.exit_code == 0 and "row-" not in same.output


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Prompts of every length: a score for each. The device fails the long ones."""
    file = tmp_path / "many.jsonl"
    rows = [{"prompt": f"Prove {n}. " + "again " * (n % 97), "weak": float(n % 97 < 60), "strong": 1} for n in range(800)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_calibrate_meets_a_share_on_the_other_half_and_writes_a_new_policy(many: Path, tmp_path: Path) -> None:
    out = tmp_path / "new.toml"
    result = run("calibrate", "--input", many, "--cloud-share", 0.3, "--json", "--out", out)
    found = json.loads(result.stdout)
    assert result.exit_code == 0 and abs(found["held_out"]["cloud_share"] - 0.3) < 0.06  # 400 rows: 2.6 standard errors
    low, high = found["held_out"]["ci95"]["cloud_share"]
    assert low < found["held_out"]["cloud_share"] < high
    read = Policy.load(out)
    assert read.hash == found["new_hash"] and read.complexity.hard_from == found["threshold"] == read.complexity.cascade_from
    assert "fitted on 400, measured on 400 others" in out.read_text().replace("\n# ", " ")
    again = run("calibrate", "--input", many, "--cloud-share", 0.3, "--out", out)
    assert isinstance(again.exception, Conflict)


def test_calibrate_says_when_the_prompts_are_few(many: Path, tmp_path: Path) -> None:
    lines, few = many.read_text().splitlines(), tmp_path / "few.jsonl"
    wish = ("calibrate", "--input", few, "--cloud-share", 0.3)
    few.write_text("\n".join(lines[:50]))
    assert "Few prompts: a share of 25 is known to 20% up or down. Take 200 or more." in run(*wish).output
    for rows, told in ((198, True), (200, False)):
        few.write_text("\n".join(lines[:rows]))
        assert json.loads(run(*wish, "--json").stdout)["few"] is told


def test_calibrate_says_what_the_threshold_was_and_when_it_stays(many: Path, tmp_path: Path) -> None:
    """A fit that changes nothing must not look like one that did."""
    out, wish = tmp_path / "new.toml", ("calibrate", "--input", many, "--cloud-share", 0.3)
    first = run(*wish, "--out", out)
    threshold = Policy.load(out).complexity.hard_from
    assert f"complexity.hard_from = {threshold!r} (before: {Policy.default().complexity.hard_from!r})" in first.output
    again = run(*wish, "--policy", out)
    assert f"complexity.hard_from = {threshold!r} (as before: the policy would not change)" in again.output
    assert "on prompts like those of many.jsonl" in again.output and "cloud_share" in again.output
    found = json.loads(run(*wish, "--policy", out, "--json").stdout)
    assert found["changed"] is False and found["before"] == found["bands"]
    assert json.loads(run(*wish, "--json").stdout)["changed"] is True


def test_calibrate_promises_an_error_rate_or_says_why_not(many: Path) -> None:
    found = json.loads(run("calibrate", "--input", many, "--error-rate", 0.05, "--json").stdout)
    assert found["promise"]["error_rate"] == 0.05 and found["held_out"]["device_error"] <= 0.1 and found["promise"]["kept"] > 100
    assert "with probability 90%" in run("calibrate", "--input", many, "--error-rate", 0.05).output
    refused = run("calibrate", "--input", many, "--error-rate", 0.0001)
    assert isinstance(refused.exception, CannotPromise) and refused.exception.exit_code == 6


def test_calibrate_keeps_a_budget(many: Path) -> None:
    prices = ("--fact", "price_in=1", "--fact", "price_out=10")
    full = json.loads(run("calibrate", "--input", many, "--cloud-share", 1, "--json", *prices).stdout)["fitted"]["cost"]
    found = json.loads(run("calibrate", "--input", many, "--budget", full / 2, "--json", *prices).stdout)
    assert full * 0.45 < found["fitted"]["cost"] <= full / 2


def test_other_prompts_ring_the_alarm_and_more_of_the_same_do_not(many: Path, outcomes: Path) -> None:  # noqa: F811
    result = run("calibrate", "--input", many, "--cloud-share", 0.3, "--check", outcomes, "--json")
    assert result.exit_code == 6 and json.loads(result.stdout)["alarm"] is True and "drift of" in result.stderr
    same = run("calibrate", "--input", many, "--cloud-share", 0.3, "--check", many, "--fail-if", "drift > 10%")
    assert same.exit_code == 0 and "drifted" not in same.output


@pytest.mark.parametrize("wishes", [[], ["--cloud-share", "0.3", "--budget", "1"], ["--cloud-share", "1.5"], ["--error-rate", "0"]])
def test_calibrate_takes_one_wish(many: Path, wishes: list[str]) -> None:
    result: Result = CliRunner().invoke(route, ["calibrate", "--input", str(many), *wishes])
    assert result.exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("calibrate", "--cloud-share", "nan"),
        ("calibrate", "--budget", "inf"),
        ("calibrate", "--cloud-share", "0.3", "--band", "nan"),
        ("test", "--handover", "nan"),
        ("test", "--seed", "-1"),
    ],
)
def test_a_number_that_is_none_is_a_fault_of_usage(outcomes: Path, words: tuple[str, ...]) -> None:  # noqa: F811
    assert run(*words, "--input", outcomes, "--json").exit_code == 2
