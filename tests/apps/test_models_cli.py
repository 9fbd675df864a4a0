"""`hybrid pull | list | show | rm | doctor | version`, on real files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.main import cli
from hybrid.apps.cli.output import Progress
from hybrid.npu_backends.cpu.reference import reference_kernel_id
from hybrid.shared_protocol.errors import ModelNotFound
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.store import Store
from hybrid.tests.support.gguf_writer import header, string, tensor_header


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def hybrid(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False)


def as_json(*arguments: str) -> Any:
    result = hybrid(*arguments, "--json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_a_model_is_pulled_listed_shown_and_removed(tiny_llama: Model, home: Path) -> None:
    pulled = as_json("pull", f"file:{tiny_llama.path}", "--name", "mine")
    assert pulled["file_hash"] == tiny_llama.card.file_hash
    assert as_json("list") == {"models": [pulled]}
    assert as_json("show", "mine") == pulled
    assert Path(pulled["path"]).is_relative_to(home)
    assert "removed mine" in hybrid("rm", "mine").stdout
    assert as_json("list") == {"models": []}
    hybrid("pull", f"file:{tiny_llama.path}")
    assert as_json("rm", "tiny") == {"removed": ["tiny"]}


def test_tables_are_for_people(tiny_llama: Model) -> None:
    assert "hybrid pull smollm2-135m" in hybrid("list").stdout
    result = hybrid("pull", f"file:{tiny_llama.path}")
    assert "tiny: Q4_1" in result.stdout
    assert "copying tiny.gguf" in result.stderr
    assert hybrid("list").stdout.splitlines()[1].split()[:3] == ["tiny", "llama", "Q4_1"]
    assert f"fingerprint      {tiny_llama.card.fingerprint}" in hybrid("show", "tiny").stdout


def test_a_file_outside_the_store_is_shown_too(tiny_llama: Model, home: Path) -> None:
    assert as_json("show", str(tiny_llama.path))["fingerprint"] == tiny_llama.card.fingerprint
    assert not home.exists()


def test_a_model_that_is_not_there_is_not_found() -> None:
    for command in ("show", "rm"):
        with pytest.raises(ModelNotFound):
            hybrid(command, "none")


def test_doctor_finds_a_changed_file_and_says_what_to_do(tiny_llama: Model) -> None:
    hybrid("pull", f"file:{tiny_llama.path}")
    report = as_json("doctor")
    assert {finding["check"] for finding in report["findings"]} == {"python", "kernels", "llama.cpp", "pip", "store", "model tiny"}
    assert report["ok"]
    path = Store().path("tiny")
    before = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert hybrid("doctor").exit_code == 0
    result = hybrid("doctor", "--verify")
    assert result.exit_code == 1
    assert "hybrid rm tiny" in result.stdout


def test_doctor_names_what_is_no_model(home: Path) -> None:
    (home / "models" / "torn").mkdir(parents=True)
    result = hybrid("doctor")
    assert (result.exit_code, "model torn" in result.stdout) == (1, True)
    assert "hybrid rm torn" in hybrid("list").stderr


def test_doctor_says_which_kernels_serve_or_why_none() -> None:
    kernels = as_json("doctor")["kernels"]
    assert bool(kernels["kernel_id"]) == kernels["found"] == (not kernels["reason"])
    if not os.environ.get("HYBRID_BACKEND"):
        assert as_json("version")["kernel_id"] == (kernels["kernel_id"] or reference_kernel_id())
    assert hybrid("version").stdout.startswith("hybrid 0.")


HOSTILE = {
    "dimension 0": (header(1, 0) + tensor_header("w", [0], 0, 0), "'w'"),
    "empty key": (header(0, 1) + string(""), "key 0"),
    "dimensions that wrap": (header(1, 0) + tensor_header("w", [2**32 + 1, 2**32], 0, 0), "'w'"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_ends_the_command_with_one_line_and_an_exit_code_that_is_no_signal(tmp_path: Path, kind: str) -> None:
    raw, named = HOSTILE[kind]
    assert len(raw) < 100
    (tmp_path / "hostile.gguf").write_bytes(raw)
    command = [sys.executable, "-m", "hybrid.apps.cli.main", "show", str(tmp_path / "hostile.gguf")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert named in run.stderr
    assert len(run.stderr.splitlines()) == 1


class Terminal(list[str]):
    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.append(text)

    def flush(self) -> None: ...


def test_progress_on_a_terminal_rewrites_its_line_at_most_ten_times_a_second() -> None:
    shown, now = Terminal(), iter([0.0, 0.05, 0.2])
    progress = Progress(clock=lambda: next(now), stream=shown)
    for done in (0, 1_000_000, 2_000_000):
        progress("copying", done, 4_000_000)
    progress.close()
    assert "".join(shown) == "\r\x1b[Kcopying\r\x1b[Kcopying  2.0 MB of 4.0 MB  10.0 MB/s\r\x1b[K"


def test_progress_in_a_log_is_a_line_per_stage_and_every_ten_seconds() -> None:
    log, now = StringIO(), iter([0.0, 9.0, 20.0, 21.0])
    progress = Progress(clock=lambda: next(now), stream=log)
    for what, done in (("downloading", 1_000_000), ("downloading", 5_000_000), ("downloading", 41_000_000), ("checking", 0)):
        progress(what, done, None)
    progress.close()
    assert log.getvalue() == "downloading  1.0 MB\ndownloading  41.0 MB  2.0 MB/s\nchecking\n"


def test_progress_without_a_stderr_says_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr", None)  # as Python does when it was closed before
    progress = Progress()
    progress("downloading", 0, 10)
    progress.close()
    assert capsys.readouterr().out == ""


def test_the_help_of_pull_names_every_source() -> None:
    said = hybrid("pull", "--help").stdout
    for form in ("NAME", "hf:ORG/REPO[@REVISION][/FILE]", "https://HOST/PATH/FILE.gguf", "pypi:DIST[==VERSION][/FILE]", "file:PATH"):
        assert form in said
