"""`hybrid route test`: the shares of a policy, the figures of the router beside its baselines, and gates for a pipeline."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.route import route
from hybrid.shared_protocol.errors import ConfigError, InvalidRequest, NotEnoughSpace, NotFound

TASKS = (
    "Prove step by step that {} is even.",
    "Name the number after {}.",
    "Design and implement a parser for {} in Rust, and analyse it.",
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 prompts of three kinds: the device fails the first and the last, the cloud fails a few."""
    file = tmp_path_factory.mktemp("outcomes") / "ours.jsonl"
    rows = [
        {"id": f"row-{n}", "prompt": TASKS[n % 3].format(n), "weak": float(n % 3 == 1), "strong": float(n % 11 != 0), "time": n}
        for n in range(120)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(route, [str(argument) for argument in arguments])


def test_the_report_is_one_object_with_every_figure_and_its_interval(outcomes: Path) -> None:
    result = run("test", "--input", outcomes, "--folds", 4, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["input"] == {"file": "ours.jsonl", "rows": 120, "outcomes": 120, "prompts": 120} and found["folds"] == 4
    assert {"random", "length", "tfidf_ridge", "ours", "oracle"} <= set(found["apgr"]) == set(found["cpt50"]) == set(found["aiq"])
    assert {*found["apgr"], "accuracy", "pgr", "cpt50", "cpt80", "aiq", "ece", "brier", "auroc", "aurc"} <= set(found["ci95"])
    assert all(low <= high for low, high in found["ci95"].values())
    assert {"ours-length", "ours-tfidf_ridge"} <= set(found["paired"]) and all(len(three) == 3 for three in found["paired"].values())
    assert found["paired"]["ours-length"][0] == pytest.approx(found["apgr"]["ours"] - found["apgr"]["length"])
    assert found["weak"] == pytest.approx(1 / 3) and found["strong"] == pytest.approx(109 / 120)
    assert sum(one["n"] for one in found["bins"]) == 120
    assert found["undefined"] == {} and found["gates"] == []
    assert found["apgr"]["oracle"] == max(found["apgr"].values()) and found["apgr"]["ours"] > found["apgr"]["random"]
    assert run("test", "--input", outcomes, "--folds", 4, "--json").stdout == result.stdout


def test_no_prompt_is_printed(outcomes: Path) -> None:
    for more in ([], ["--json"]):
        result = run("test", "--input", outcomes, *more)
        assert result.exit_code == 0 and not any(word in result.output for word in ("Prove", "Name the", "parser"))


def test_a_person_reads_tables(outcomes: Path) -> None:
    result = run("test", "--input", outcomes)
    assert result.output.startswith("ours.jsonl: 120 rows, 120 different prompts, 120 with outcomes")
    for word in ("tfidf_ridge", "oracle", "cloud share", "complexity.cascade_from", "ECE", "ours-length"):
        assert word in result.output


def test_a_gate_that_fails_exits_with_6_and_is_said_and_written(outcomes: Path) -> None:
    result = run("test", "--input", outcomes, "--json", "--fail-if", "cloud_share > 1%", "--fail-if", "apgr < 0.1")
    assert result.exit_code == 6
    assert "cloud_share > 1%: failed, cloud_share is 0.66" in result.stderr and "apgr < 0.1: passed" in result.stderr
    assert [(one["gate"], one["failed"]) for one in json.loads(result.stdout)["gates"]] == [
        ("cloud_share > 1%", True),
        ("apgr < 0.1", False),
    ]
    assert run("test", "--input", outcomes, "--fail-if", "apgr < 0.1").exit_code == 0


def test_rows_without_outcomes_have_shares_and_a_gate_on_quality_fails(tmp_path: Path) -> None:
    file = tmp_path / "plain.jsonl"
    file.write_text('{"prompt": "Hello there"}\n')
    result = run("test", "--input", file, "--json", "--fail-if", "apgr < 0.7", "--fail-if", "seconds > 1")
    assert result.exit_code == 6 and "the rows have no scores" in result.stderr and "seconds is undefined" in result.stderr
    found = json.loads(result.stdout)
    assert found["shares"]["route"] == {"edge": 1.0} and "apgr" not in found and found["cost"] == 0


@pytest.mark.parametrize("with_outcomes", [True, False])
def test_every_figure_that_a_gate_may_name_is_there_with_and_without_outcomes(outcomes: Path, tmp_path: Path, with_outcomes: bool) -> None:
    """The names are checked before anything is measured: a list that is too long would end in a KeyError, one too short in exit 2."""
    file = outcomes if with_outcomes else tmp_path / "plain.jsonl"
    if not with_outcomes:
        file.write_text('{"prompt": "Hello there"}\n')
    unknown = run("test", "--input", file, "--fail-if", "nothing > 1").exception
    assert isinstance(unknown, InvalidRequest) and unknown.hint is not None
    names = unknown.hint.removeprefix("there are ").split(", ")
    assert {"cloud_share", "apgr", "apgr.length", "aiq.oracle", "ece"} <= set(names)
    result = run("test", "--input", file, "--json", *(word for name in names for word in ("--fail-if", f"{name} > 1e9")))
    assert [one["gate"].split()[0] for one in json.loads(result.stdout)["gates"]] == names


def test_prices_and_presets_are_taken(outcomes: Path) -> None:
    facts = ["price_in=1", "price_out=10", "rtt_ms=80"]
    times = [f"{name}=0.001" for name in ("edge_prefill", "edge_decode", "cloud_prefill", "cloud_decode")]
    given = [word for option, words in (("--fact", facts), ("--seconds", times)) for text in words for word in (option, text)]
    found = json.loads(run("test", "--input", outcomes, "--json", *given).stdout)
    assert found["cost"] > 0 and found["seconds"] > 0
    offline = json.loads(run("test", "--input", outcomes, "--json", "--policy", "preset:offline").stdout)
    assert offline["cloud_share"] == 0 and offline["accuracy"] == pytest.approx(1 / 3) and offline["pgr"] == pytest.approx(0)


def test_models_that_are_equally_good_leave_the_figures_undefined(tmp_path: Path) -> None:
    file = tmp_path / "equal.jsonl"
    file.write_text("".join(json.dumps({"prompt": TASKS[n % 3].format(n), "weak": n % 2, "strong": n % 2}) + "\n" for n in range(40)))
    result = run("test", "--input", file, "--json", "--fail-if", "apgr < 0")
    found = json.loads(result.stdout)
    assert result.exit_code == 6 and found["apgr"]["ours"] is None and found["ci95"]["ours"] is None and found["ece"] is not None
    assert "the strong model is not better" in found["undefined"]["apgr.ours"]
    assert "-  " in run("test", "--input", file).output


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--fail-if", "agpr < 1"], InvalidRequest),
        (["--fail-if", "rm -rf"], InvalidRequest),
        (["--folds", 99], InvalidRequest),
        (["--policy", "none.toml"], ConfigError),
    ],
)
def test_wrong_usage_is_a_typed_error(tmp_path: Path, arguments: list[object], error: type[Exception]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"prompt": "a", "weak": 0, "strong": 1}\n{"prompt": "b", "weak": 0, "strong": 1}\n')
    assert isinstance(run("test", "--input", file, "--folds", 2, *arguments).exception, error)
    assert isinstance(run("test", "--input", tmp_path / "none.jsonl").exception, NotFound)


@pytest.mark.parametrize(
    "arguments", [["--seconds", text] for text in ("edge=1", "edge_decode", "edge_decode=x", "edge_decode=-1", "edge_decode=nan")]
)
def test_a_time_that_is_none_is_said(outcomes: Path, arguments: list[str]) -> None:
    result = run("test", "--input", outcomes, *arguments)
    assert result.exit_code == 2 and "--seconds" in result.output
    assert run("test", "--input", outcomes, "--fact", "speed=1").exit_code == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_page_on_a_full_disk_is_told_apart_from_a_folder_that_is_not_there(outcomes: Path, tmp_path: Path) -> None:
    options = ("test", "--input", outcomes, "--folds", 4, "--html")
    assert isinstance(run(*options, "/dev/full").exception, NotEnoughSpace)
    assert isinstance(run(*options, tmp_path / "none" / "page.html").exception, NotFound)
