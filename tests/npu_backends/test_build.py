"""Installing with and without a compiler."""

import os
import subprocess
import sys
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
