"""`hybrid compile`: what it prints, writes and refuses, on a tiny model."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.main import cli
from hybrid.shared_protocol.compile_errors import DoesNotFit
from hybrid.shared_protocol.errors import HybridError
from hybrid.tests.support.html_page import checked


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["compile", *map(str, arguments)])


def test_a_report_is_a_page_an_object_and_a_trace_of_every_run(home: Path, tiny_llama_path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    found = run(tiny_llama_path, "--target", "ethos-u85-256", "--context", "96", "--report", folder, "--json")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told == json.loads((folder / "report.json").read_text())
    assert [graph["name"] for graph in told["graphs"]] == ["prefill", "verify", "decode"]
    for graph in told["graphs"]:
        assert graph["seconds"] > 0 and graph["tokens_per_s"] <= graph["roofline_tokens_per_s"]
        assert all(arena["size"] >= arena["bound"] for arena in graph["arenas"])
        assert sum(segment["cycles"] for segment in graph["segments"] if segment["chip"] == "systolic") == graph["cycles"]
        assert {"scores", "mix"} <= {kind for one in graph["refused"] for kind in one["kind"].split(" + ")}
    assert told["fidelity"]["tokens"] > 100 and 0 <= told["fidelity"]["top1"] <= 1
    page = checked(folder / "report.html")
    assert "decode: memory plan" in page.words and "ethos-u85-256" in page.words
    for rows in (32, 8, 1):
        events = json.loads((folder / f"trace_rows{rows}.json").read_text())["traceEvents"]
        assert {"dma_in", "array", "cpu"} <= {event["args"]["name"] for event in events if event["ph"] == "M"}


def test_a_second_time_it_is_there_and_the_same(home: Path, tiny_llama_path: Path) -> None:
    first, second = (json.loads(run(tiny_llama_path, "--target", "ethos-u85-256", "--context", "64", "--json").stdout) for _ in range(2))
    assert (first["artifact"].pop("cached"), second["artifact"].pop("cached")) == (False, True)
    assert first == second and first["fidelity"] is None
    assert Path(first["artifact"]["path"]).is_relative_to(home)


def test_people_read_a_table(home: Path, tiny_llama_path: Path) -> None:
    lines = run(tiny_llama_path, "--target", "ethos-u85-256", "--context", "64").stdout.splitlines()
    assert lines[0].split()[:4] == ["RUN", "TOKENS", "CYCLES", "MS"] and [line.split()[0] for line in lines[1:4]] == [
        "prefill",
        "verify",
        "decode",
    ]
    assert any(line.startswith("on the processor: ") and "f16" in line for line in lines)


def test_a_smoothed_model_is_said_to_be_one_in_the_object_on_the_page_and_in_the_table(
    home: Path, tiny_llama_path: Path, tmp_path: Path
) -> None:
    arguments = (tiny_llama_path, "--target", "systolic-32", "--context", "32")
    told = json.loads(run(*arguments, "--smooth", "--report", tmp_path / "report", "--json").stdout)
    assert told["smoothing"]["strength"] == 0.5 and told["smoothing"]["tokens"] > 100 and not told["smoothing"]["own_text"]
    assert "smoothed (strength 0.5) by" in checked(tmp_path / "report" / "report.html").words
    (tmp_path / "mine.txt").write_text("The kiln is lit on Mondays.")
    assert "of your text" in run(*arguments, "--smooth-text", tmp_path / "mine.txt").stdout
    assert json.loads(run(*arguments, "--json").stdout)["smoothing"] is None


def test_weights_beyond_the_memory_need_a_storage_and_others_wait_for_none(home: Path, tiny_llama_path: Path, tmp_path: Path) -> None:
    preset = (files("hybrid.npu_backends.presets") / "ethos-u85-256.toml").read_text()
    (memory,) = re.findall(r"^\[dram\]\nbytes = \{ value = ([0-9_]+)", preset, re.MULTILINE)
    chip = tmp_path / "small.toml"
    chip.write_text(preset.replace(memory, "100_000"))
    arguments = (tiny_llama_path, "--target", chip, "--context", "64")
    error = run(*arguments).exception
    assert isinstance(error, DoesNotFit) and "--storage" in str(error)
    fitting = json.loads(run(tiny_llama_path, "--target", "ethos-u85-256", "--context", "64", "--storage", "0.5", "--json").stdout)
    assert all(graph["stalls_seconds"] == 0 for graph in fitting["graphs"])


def test_chips_are_listed_without_a_model() -> None:
    told = json.loads(run("--targets", "--json").stdout)["targets"]
    assert {"ethos-u85-2048", "systolic-32"} <= {chip["name"] for chip in told}
    assert "ethos-u85-2048" in run("--targets").stdout


@pytest.mark.parametrize(
    ("arguments", "told", "code"),
    [
        (("--target", "ethos-u85-2000"), "ethos-u85-2048", 5),
        (("--target", "ethos-u85-256", "--scheme", "w4a8"), "int4_group32", 1),
        (("--context", "100000"), "context", 2),
        (("--target", "systolic-32", "--scheme", "w4a8", "--smooth"), "smoothing is for w8a8", 1),
        (("--smooth-text", "nowhere.txt"), "nowhere.txt", 5),
    ],
)
def test_what_cannot_be_compiled_is_said(home: Path, tiny_llama_path: Path, arguments: tuple[str, ...], told: str, code: int) -> None:
    error = run(tiny_llama_path, *arguments).exception
    assert isinstance(error, HybridError) and told in str(error) and error.exit_code == code


def test_without_a_model_it_asks_for_one() -> None:
    assert run().exit_code == 2


def test_where_nothing_can_be_written_it_is_said(
    home: Path, tiny_llama_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    error = run(tiny_llama_path, "--report", tmp_path / "file" / "report").exception
    assert isinstance(error, HybridError) and "no report can be written" in str(error)
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "file"))
    found = run(tiny_llama_path, "--target", "systolic-32", "--context", "1")
    assert found.exit_code == 0 and "not kept" in found.stdout
