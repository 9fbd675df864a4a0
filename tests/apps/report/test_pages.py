"""The pages are whole by themselves: no address, no script, every tag closed, and no word of a file that could be markup."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hybrid.apps.cli.route import route
from hybrid.tests.support.html_page import checked

EVIL = "<script>alert('&\"')</script>"


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    file = tmp_path / f"{EVIL[:8].replace('<', '').replace('>', '')}&.jsonl"
    rows = [
        {"id": f"{EVIL}{n}", "prompt": f"{EVIL} prove {n} " + "step by step " * (n % 5), "weak": n % 3 / 2, "strong": 1, "time": 3600 * n}
        for n in range(60)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def run(*arguments: object) -> int:
    return CliRunner().invoke(route, [str(argument) for argument in arguments]).exit_code


def test_the_page_of_a_test(prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "test.html"
    assert run("test", "--input", prompts, "--html", out, "--fail-if", "cloud_share >= 0") == 6
    page = checked(out)
    for words in ("Quality for cost", "Routers side by side", "Is the forecast right?", "Over time", "oracle", "complexity.", "1970-01-03"):
        assert words in page.words
    assert page.tags.count("svg") == 5 and "failed" in page.words
    assert "prove" not in page.words and "alert" not in page.words  # no prompt, no id


def test_the_page_without_outcomes_and_times(tmp_path: Path) -> None:
    file = tmp_path / "plain.jsonl"
    file.write_text('{"prompt": "Hello"}\n')
    assert run("test", "--input", file, "--html", tmp_path / "a.html") == 0
    page = checked(tmp_path / "a.html")
    assert "svg" not in page.tags and "100.0%" in page.words


def test_the_page_of_models_that_are_equally_good(tmp_path: Path) -> None:
    file = tmp_path / "equal.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"prompt {n}", "weak": n % 2, "strong": n % 2}) + "\n" for n in range(20)))
    assert run("test", "--input", file, "--html", tmp_path / "a.html") == 0
    assert "the strong model is not better" in checked(tmp_path / "a.html").words


def test_the_page_of_a_diff_shows_ids_and_prompts_only_when_asked(prompts: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours.toml"
    ours.write_text("[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n")
    assert run("diff", "default", ours, "--input", prompts, "--html", tmp_path / "d.html") == 0
    page = checked(tmp_path / "d.html")
    assert "Changed prompts" in page.words and f"{EVIL}1" in page.words and "prove" not in page.words
    assert run("diff", "default", ours, "--input", prompts, "--html", tmp_path / "p.html", "--show-prompts") == 0
    assert f"{EVIL} prove 1" in checked(tmp_path / "p.html").words


def test_a_page_that_cannot_be_written_is_said(prompts: Path, tmp_path: Path) -> None:
    assert (
        run("diff", "default", "default", "--input", prompts, "--html", tmp_path / "none" / "a.html") == 1
    )  # NotFound, exit 3 of the program
