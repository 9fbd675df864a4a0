"""The NEON kernels, cross-compiled and emulated where they are not native: every function gives the bits that AVX2 gives."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hybrid.npu_backends.cpu.library import describe

ROOT = Path(__file__).resolve().parents[2]
HARNESS = ROOT / "tests" / "npu_backends" / "kernel_digests.cpp"
FLAGS = ["-std=c++17", "-O1", "-ffp-contract=off", "-fno-math-errno"]
CROSS, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
MISSING = [tool for tool in (CROSS, EMULATOR, "g++") if shutil.which(tool) is None]


def digests(folder: Path, compiler: str, isa: str, table: str, *options: str) -> list[str]:
    program = folder / isa
    sources = [HARNESS, ROOT / "npu_backends" / "cpu" / "kernels" / f"gemm_{isa}.cpp"]
    subprocess.run([compiler, *FLAGS, *options, f"-DKERNELS={table}", *map(str, sources), "-o", str(program)], check=True, timeout=600)
    run = [str(program)] if compiler != CROSS else [EMULATOR, "-cpu", "max", str(program)]
    return subprocess.run(run, check=True, capture_output=True, text=True, timeout=600).stdout.splitlines()


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (Debian: g++-aarch64-linux-gnu, qemu-user)")
@pytest.mark.skipif(describe({**os.environ, "HYBRID_ISA": "avx2"}).isa != "avx2", reason="there is no AVX2 here to compare with")
def test_neon_computes_what_avx2_computes_to_the_bit(tmp_path: Path) -> None:
    expected = digests(tmp_path, "g++", "avx2", "kAvx2Kernels")
    assert len({line.split()[-1] for line in expected}) == len(expected) > 200  # every case has a result of its own
    assert digests(tmp_path, CROSS, "neon", "kNeonKernels", "-static") == expected
