"""What the command says when something goes wrong: one line, the exit code of the error's class, the traceback on request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hybrid.apps.cli.main import COMMANDS

HYBRID = [sys.executable, "-m", "hybrid.apps.cli.main"]


def hybrid(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    told = {**os.environ, **environment}
    return subprocess.run([*HYBRID, *arguments], capture_output=True, text=True, env=told, check=False)


@pytest.mark.parametrize("arguments", [("--debug", "show", "none"), ("show", "none", "--debug")])
def test_debug_shows_the_traceback_wherever_it_stands_and_keeps_the_exit_code(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    run = hybrid(*arguments, HYBRID_HOME=str(tmp_path))
    assert run.returncode == 3
    assert run.stderr.startswith("Traceback") and "ModelNotFound" in run.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_what_nobody_foresaw_is_one_line_too() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # else nothing is left for Python's end
    with open("/dev/full", "w") as full:
        run = subprocess.run([*HYBRID, "version"], stdout=full, stderr=subprocess.PIPE, text=True, env=buffered, check=False)
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith("hybrid: ") and "No space left" in line and "--debug" in line


def test_a_store_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "model.gguf").write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        for command in (("pull", f"file:{tmp_path}/model.gguf"), ("rm", "none")):
            run = hybrid(*command, HYBRID_HOME=str(home))
            assert (run.returncode, len(run.stderr.splitlines())) == (5, 1)
            assert str(home) in run.stderr and "set HYBRID_HOME" in run.stderr
        doctor = hybrid("doctor", HYBRID_HOME=str(home))
        assert doctor.returncode == 1
        assert "failed  store" in doctor.stdout and "set HYBRID_HOME" in doctor.stdout


def test_the_hint_for_a_missing_model_is_a_command_that_can_work(tmp_path: Path) -> None:
    assert "(hybrid pull smollm2-135m)" in hybrid("show", "smollm2-135m", HYBRID_HOME=str(tmp_path)).stderr
    unknown = hybrid("show", "none", HYBRID_HOME=str(tmp_path)).stderr
    assert "hybrid pull none" not in unknown and "smollm2-135m" in unknown
    assert "pull" not in hybrid("rm", "none", HYBRID_HOME=str(tmp_path)).stderr


def test_version_and_doctor_name_what_would_serve() -> None:
    assert "numpy-" in hybrid("version", HYBRID_BACKEND="reference").stdout
    assert "HYBRID_BACKEND=reference" in hybrid("doctor", HYBRID_BACKEND="reference").stdout
    doctor = hybrid("doctor", HYBRID_BACKEND="gpu")
    assert doctor.returncode == 1 and "'gpu' is not known" in doctor.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    run = hybrid(command, "-h")
    assert run.returncode == 0 and "--debug" in run.stdout


def test_help_loads_nothing_heavy() -> None:
    heavy = {"numpy", "tokenizers", "jinja2", "fastapi", "aiohttp"}
    program = (
        "import sys; sys.argv = ['hybrid', '--help']\n"
        "from hybrid.apps.cli.main import main\n"
        "try: main()\n"
        f"except SystemExit as end: print(end.code, sorted({heavy!r} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "0 []"


@pytest.mark.parametrize("words", [("compile", "x", "--storage"), ("run", "x", "hi", "--temperature"), ("chat", "x", "--temperature")])
def test_nan_is_wrong_usage_before_a_model_is_looked_for(words: tuple[str, ...]) -> None:
    assert hybrid(*words, "nan").returncode == 2
