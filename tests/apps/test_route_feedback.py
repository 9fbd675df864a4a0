"""`hybrid route feedback`: observed answers move a learned router a little, and it can always be taken back."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.route import route
from hybrid.router.learned.model import predict
from hybrid.router.learned.store import load, save
from hybrid.shared_protocol.errors import ConfigError, Conflict, InvalidRequest, NotFound
from hybrid.tests.router.learned.outcomes import trained_router

PROMPT = "A merchant buys 14 crates and sells 9 of them. How many are left?"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("feedback") / "ours.hybrid"
    save(trained_router(80), file)
    return file


def run(trained: Path, folder: Path, *arguments: object) -> Result:
    fixed = ("feedback", "--model", trained, "--history", folder / "log", "--date", "2026-05-02")
    return CliRunner().invoke(route, [str(argument) for argument in (*fixed, *arguments)])


def observations(folder: Path, *rows: object) -> Path:
    file = folder / "seen.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return file


def test_failures_of_the_device_lower_what_is_expected_of_it_and_going_back_undoes_that(trained: Path, tmp_path: Path) -> None:
    seen = observations(tmp_path, *[{"prompt": PROMPT, "side": "edge", "score": 0.0}] * 20)
    before = predict(load(trained), PROMPT)
    result = run(trained, tmp_path, "--input", seen, "--out", tmp_path / "one", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["version"], found["what"]) == (1, "20 observations") and 0 < found["drift"] <= 0.1 + 1e-9
    after = predict(load(tmp_path / "one"), PROMPT)
    assert after.p_edge < before.p_edge and after.p_cloud == pytest.approx(before.p_cloud)
    assert run(trained, tmp_path, "--back-to", 0, "--out", tmp_path / "two").exit_code == 0
    assert predict(load(tmp_path / "two"), PROMPT).p_edge == pytest.approx(before.p_edge)
    assert run(trained, tmp_path, "--back-to", 1, "--out", tmp_path / "three", "--json").stdout.count("back to version 1") == 1
    assert predict(load(tmp_path / "three"), PROMPT).p_edge == pytest.approx(after.p_edge)
    assert b"merchant" not in (tmp_path / "log").read_bytes()


def test_what_cannot_be_learned_from_is_refused_and_changes_nothing(trained: Path, tmp_path: Path) -> None:
    good = {"prompt": PROMPT, "side": "edge", "score": 1}
    for row, error in (
        ({"prompt": PROMPT}, InvalidRequest),
        ({**good, "score": 1.5}, InvalidRequest),
        ({**good, "side": "us"}, InvalidRequest),
    ):
        result = run(trained, tmp_path, "--input", observations(tmp_path, good, row), "--out", tmp_path / "out")
        assert isinstance(result.exception, error) and ":2:" in str(result.exception) and "merchant" not in str(result.exception)
    assert isinstance(run(trained, tmp_path, "--input", tmp_path / "none", "--out", tmp_path / "out").exception, NotFound)
    assert isinstance(run(trained, tmp_path, "--back-to", 1, "--out", tmp_path / "out").exception, InvalidRequest)
    assert isinstance(run(trained, tmp_path, "--back-to", 0, "--out", trained).exception, Conflict)
    assert run(trained, tmp_path, "--out", tmp_path / "out").exit_code == 2
    (tmp_path / "log").write_bytes(b"something else")
    assert isinstance(run(trained, tmp_path, "--back-to", 0, "--out", tmp_path / "out").exception, ConfigError)
    assert not (tmp_path / "out").exists()
