"""Installing with and without a compiler."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("setuptools", minversion="77", reason="pip builds in an environment of its own; the extra `dev` has setuptools")


def build(tmp_path: Path, compiler: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "setup.py", "build_ext", "--build-lib", str(tmp_path), "--build-temp", str(tmp_path / "temp")]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "CXX": compiler}, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("compiler", ["false", "/no/such/compiler"])
def test_a_compiler_that_fails_is_a_warning_and_leaves_no_library(tmp_path: Path, compiler: str) -> None:
    stale = tmp_path / "hybrid/npu_backends/cpu/libhybrid_kernels.so"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"from an earlier build")
    done = build(tmp_path, compiler)
    assert done.returncode == 0, done.stderr
    assert "the native kernels were not built" in done.stdout + done.stderr
    assert not list(tmp_path.rglob("libhybrid_kernels.*"))


def test_a_wheel_fits_every_python_and_brings_the_data_files(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("which files belong to the project is asked of git")
    tracked = [name for name in listed.stdout.splitlines() if not name.startswith(("tests/", "benchmarks/", "docs/"))]
    tree = tmp_path / "hybrid"  # a clean copy: what earlier builds left in the checkout can bring files that the settings leave out
    for name in tracked:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=tree, env={**os.environ, "CXX": "false"}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.split("-")[2:4] == ["py3", "none"]  # then the platform
    inside = set(zipfile.ZipFile(wheel).namelist())
    expected = {f"hybrid/{name}" for name in tracked if name.endswith((".py", ".toml", ".json", ".typed"))}
    missing = {name for name in expected - inside if not name.startswith("hybrid/.")}
    assert missing == {"hybrid/pyproject.toml", "hybrid/setup.py"}
