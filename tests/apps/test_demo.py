"""`hybrid demo` on the real model: every route is taken, and what it prints is what happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hybrid.apps.cli.main import cli


@pytest.fixture(scope="module")
def shown(smollm2_path: Path) -> Any:
    result = CliRunner().invoke(cli, ["demo", "--json", "--model", str(smollm2_path)], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_eight_prompts_take_every_way_in_this_order(shown: Any) -> None:
    assert [(row["route"], row["reason"]) for row in shown["rows"]] == [
        ("edge", "simple"),
        ("cloud", "hard"),
        ("cascade", "low_confidence"),
        ("speculative", "drafted"),
        ("edge", "private"),
        ("edge", "quota_degraded"),
        ("refuse", "private_too_hard"),
        ("edge", "cloud_unreachable"),
    ]


def test_a_row_says_who_wrote_its_tokens_and_what_left_the_device(shown: Any) -> None:
    for row in shown["rows"]:
        assert set(row) == {"prompt", "route", "reason", "rule", "text", "tokens", "seconds", "bytes_sent", "origins", "drafts"}
        assert sum(origin["tokens"] for origin in row["origins"]) == row["tokens"]
        assert (row["bytes_sent"] > 0) == (row["route"] in ("cloud", "cascade", "speculative"))
        if row["route"] == "refuse":
            assert (row["text"], row["tokens"], row["origins"]) == (None, 0, [])
        else:
            assert row["text"]
    drafted = {origin["origin"]: origin["tokens"] for origin in shown["rows"][3]["origins"]}
    assert set(drafted) == {"drafted", "cloud"}
    assert drafted["drafted"] >= 3 * drafted["cloud"], "four drafts a round, all of them right"
    assert [row["drafts"] is not None for row in shown["rows"]] == [row["route"] == "speculative" for row in shown["rows"]]
    drafts = shown["rows"][3]["drafts"]
    assert drafts["accepted"] == drafts["proposed"] == drafted["drafted"] and drafts["acceptance"] == 1.0
    assert drafts["rounds"] == drafted["cloud"]


def test_all_ways_of_computing_a_text_agree(shown: Any) -> None:
    assert shown["checks"] == {
        "speculative_equals_cloud": True,
        "private_bytes_sent": 0,
        "cold_equals_warm": True,
        "batched_equals_single": True,
        "chunked_equals_whole": True,
    }
