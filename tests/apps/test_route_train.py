"""`hybrid route train`: a file that a policy can name, with figures beside the baselines."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.route import route
from hybrid.router.decide import decide
from hybrid.router.learned.store import load
from hybrid.router.policy.policy import Policy
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.errors import Conflict, InvalidRequest
from hybrid.shared_protocol.runtime import LinkState
from hybrid.tests.router.learned.outcomes import made_up


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("train") / "outcomes.jsonl"
    rows = [{"id": row.id, "prompt": row.prompt, "weak": row.weak, "strong": row.strong} for row in made_up()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def run(*arguments: object) -> Result:
    return CliRunner().invoke(route, [str(argument) for argument in arguments])


def test_what_is_trained_is_measured_beside_its_baselines_and_decides(outcomes: Path, tmp_path: Path) -> None:
    out = tmp_path / "router.hybrid"
    names = ("--edge", "small", "--cloud", "large", "--date", "2024-05-01")
    result = run("train", "--input", outcomes, "--out", out, "--folds", 3, *names, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found["apgr"]) == {"random", "length", "tfidf_ridge", "oracle", "ours"} and found["apgr"]["ours"] > 0.7
    assert found["ece"] < 0.1 and found["ece_cloud"] < 0.1 and {"ours-length", "ours-tfidf_ridge"} <= set(found["paired"])
    assert "measuring" in result.stderr and "merchant" not in result.output
    model = load(out)
    assert (model.id, model.about.data, model.about.trained) == (found["id"], found["data"], "2024-05-01")
    assert (model.about.edge, model.about.cloud, model.about.rows) == ("small", "large", 240)
    assert model.about.figures["apgr.ours"] == found["apgr"]["ours"]
    assert run("train", "--input", outcomes, "--out", tmp_path / "again", "--folds", 3, *names).exit_code == 0
    assert (tmp_path / "again").read_bytes() == out.read_bytes()

    policy = tmp_path / "policy.toml"
    policy.write_text('[learned]\nmodel = "router.hybrid"\n')
    prompt = made_up()[1].prompt
    shown = run("explain", prompt, "--policy", policy)
    assert shown.exit_code == 0 and "learned    score" in shown.output and "device right" in shown.output and model.id in shown.output
    as_json = run("explain", prompt, "--policy", policy, "--json")
    told = json.loads(as_json.stdout)
    assert told["provenance"]["learned_id"] == model.id and told["learned"]["traits"] and "merchant" not in as_json.stdout


def test_a_threshold_is_fitted_to_the_scores_of_the_learned_router(outcomes: Path, tmp_path: Path) -> None:
    assert run("train", "--input", outcomes, "--out", tmp_path / "router.hybrid", "--folds", 2).exit_code == 0
    policy, out = tmp_path / "policy.toml", tmp_path / "fitted.toml"
    policy.write_text('[learned]\nmodel = "router.hybrid"\n')
    result = run("calibrate", "--input", outcomes, "--policy", policy, "--cloud-share", 0.5, "--out", out, "--json")
    assert result.exit_code == 0, result.exception
    fitted = Policy.load(out)
    assert fitted.learned_router is not None and fitted.complexity.hard_from == json.loads(result.stdout)["threshold"]
    assert decide(RouteRequest.of(made_up()[1].prompt), RouteContext(policy=fitted, link=LinkState(reachable=True))).route == "cloud"


def test_a_table_of_outcomes_gives_the_router_and_the_threshold_that_the_same_rows_give(outcomes: Path, tmp_path: Path) -> None:
    """Whoever has measured a pair of models of their own fits to it from a spreadsheet."""
    rows = [json.loads(line) for line in outcomes.read_text().splitlines()]
    with (tmp_path / "ours.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    thresholds = []
    for name, file_of in (("lines", outcomes), ("table", tmp_path / "ours.csv")):
        result = run("train", "--input", file_of, "--out", tmp_path / name, "--folds", 2, "--date", "2024-05-01")
        assert result.exit_code == 0, result.exception
        thresholds.append(json.loads(run("calibrate", "--input", file_of, "--cloud-share", 0.5, "--json").stdout)["threshold"])
    assert (tmp_path / "lines").read_bytes() == (tmp_path / "table").read_bytes()
    assert thresholds[0] == thresholds[1]


def test_what_cannot_be_learned_from_is_refused(outcomes: Path, tmp_path: Path) -> None:
    lines = outcomes.read_text().splitlines(keepends=True)
    for text, said in (
        ("".join(lines[:20]), "20 different prompts are too few"),
        ("".join([*lines[:60], '{"prompt": "x", "weak": NaN, "strong": 1}\n']), "rows.jsonl:61"),
        ("".join([*lines[:60], '{"prompt": "x", "weak": 7, "strong": 1}\n']), "rows.jsonl:61"),
        ("".join(json.dumps({**json.loads(line), "strong": 1.0}) + "\n" for line in lines), "strong model has the same score"),
    ):
        (tmp_path / "rows.jsonl").write_text(text)
        error = run("train", "--input", tmp_path / "rows.jsonl", "--out", tmp_path / "out").exception
        assert isinstance(error, InvalidRequest) and said in error.message
        assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(outcomes: Path) -> None:
    assert isinstance(run("train", "--input", outcomes, "--out", outcomes).exception, Conflict)
