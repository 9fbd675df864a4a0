"""`hybrid plan`: the numbers of a plan, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.main import cli
from hybrid.shared_protocol.model import Model


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))


def plan(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["plan", *map(str, arguments)])


def as_json(*arguments: object) -> Any:
    result = plan(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


HALF = ("--draft-ms", 5, "--step-ms", 40, "--acceptance", 0.5)


def test_a_round_trip_below_the_break_even_drafts_and_one_above_does_not() -> None:
    # of k drafts 1 + 1/2 + ... + 1/2^k tokens come: 1.5, 1.75, 1.875; at 10 ms a round takes 55, 60, 65 ms
    near = as_json("--rtt-ms", 10, *HALF)
    assert near["sync_ms"][1:4] == pytest.approx([55 / 1.5, 60 / 1.75, 65 / 1.875])
    assert (near["mode"], near["draft_len"], near["plain_ms"]) == ("sync", 2, pytest.approx(40))
    far = as_json("--rtt-ms", 30, *HALF)
    assert (far["mode"], far["draft_len"]) == ("plain", 0)
    assert near["break_even_rtt_ms"] == far["break_even_rtt_ms"] == pytest.approx(20)  # 1.75 x 40 - 10 - 40


def test_lists_end_where_they_end_and_waiting_and_bytes_count() -> None:
    lists = ("--rtt-ms", 10, "--draft-ms", "5,9", "--step-ms", "40,42,46", "--acceptance", 0.5)
    assert as_json(*lists)["sync_ms"][1:] == pytest.approx([57 / 1.5, 65 / 1.75])
    slow = as_json(*lists, "--queue-ms", 3, "--bandwidth", 640_000)  # 640 bytes a round: 1 ms
    assert slow["sync_ms"][1:] == pytest.approx([61 / 1.5, 69 / 1.75])


def test_a_person_reads_what_to_do_and_why() -> None:
    lines = plan("--rtt-ms", 10, *HALF).stdout.splitlines()
    assert lines[3].split() == ["2", "drafted", "34.3", "1.17"]
    assert lines[-2:] == [
        "draft 2 a round: 1.17 times as fast as the cloud alone, drafting 2",
        "drafting is faster below a round trip of 20.0 ms",
    ]
    never = plan("--rtt-ms", 0, "--draft-ms", 90, "--step-ms", 40, "--acceptance", 0.5).stdout
    assert "do not draft" in never and "at no round trip" in never


def test_a_model_is_measured(tiny_llama: Model) -> None:
    measured = as_json(tiny_llama.path, "--rtt-ms", 10, "--step-ms", 40, "--acceptance", 0.5, "--threads", 1)
    assert measured["draft_ms"][0] == 0 and all(ms > 0 for ms in measured["draft_ms"][1:])
    assert len(measured["sync_ms"]) == 9


def test_a_policy_that_never_drafts_says_so(tmp_path: Path) -> None:
    (tmp_path / "off.toml").write_text('[speculation]\nmode = "off"\n')
    result = plan("--rtt-ms", 10, *HALF, "--policy", tmp_path / "off.toml")
    assert (result.exit_code, result.stdout) == (0, "do not draft: switched off by the policy\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--rtt-ms", 10, "--step-ms", 40, "--acceptance", 0.5),
        ("tiny", "--rtt-ms", 10, *HALF),
        ("--rtt-ms", 10, "--draft-ms", "5,x", "--step-ms", 40, "--acceptance", 0.5),
        ("--rtt-ms", 10, "--draft-ms", 5, "--step-ms", "nan", "--acceptance", 0.5),
        ("--rtt-ms", 10, "--draft-ms", "1e300", "--step-ms", 40, "--acceptance", 0.5),
        ("--rtt-ms", 10, "--draft-ms", 5, "--step-ms", 0, "--acceptance", 0.5),
        ("--rtt-ms", 10, "--draft-ms", 5, "--step-ms", 40, "--acceptance", 1.5),
        ("--rtt-ms", -1, *HALF),
        ("--rtt-ms", "nan", *HALF),
    ],
)
def test_numbers_that_cannot_be_are_wrong_usage(arguments: tuple[object, ...]) -> None:
    result = plan(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
