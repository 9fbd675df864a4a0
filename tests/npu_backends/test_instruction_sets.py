"""Which instruction sets a CPU is given, and that those which round alike compute alike, whatever their registers hold."""

import platform
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hybrid.npu_backends.cpu.library import load
from hybrid.npu_backends.cpu.matrix import multiply, pack
from hybrid.tests.support.blocks import FINITE_HALVES, TYPES, random_tensor
from hybrid.tests.support.executors import ISAS, needs_native

EMULATOR = "qemu-x86_64"
ASK = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); l.hybrid_isa.restype = ctypes.c_char_p; print(l.hybrid_isa(b'').decode())"

FUSED = [isa for isa in ISAS if isa != "scalar"]  # a multiply-add rounds once


@pytest.mark.skipif(len(FUSED) < 2, reason=f"one instruction set of this library at most rounds a multiply-add once here: {FUSED}")
@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("hostile", [False, True], ids=["usual scales", "extreme scales"])
def test_vector_instruction_sets_agree_to_the_bit_at_every_number_of_rows(type_name: str, hostile: bool) -> None:
    tensor = random_tensor(type_name, 48, 768, seed=7, halves=FINITE_HALVES if hostile else None)
    x = np.random.default_rng(8).standard_normal((70, 768)).astype(np.float32) * np.geomspace(1e-20, 1e20, 70, dtype=np.float32)[:, None]
    native = load()
    panels = pack(native, tensor)
    for rows in (*range(1, 18), 64, 65, 70):
        first, *others = (multiply(native, tensor, panels, x[:rows], isa) for isa in FUSED)
        for other in others:
            np.testing.assert_array_equal(other, first)


@needs_native
@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which(EMULATOR) is None, reason=f"{EMULATOR} is not installed (Debian: qemu-user)"
)
@pytest.mark.parametrize(("cpu", "isa"), [("Nehalem", "scalar"), ("Haswell", "avx2")])
def test_a_cpu_without_the_widest_registers_loads_the_library_and_is_given_its_best(cpu: str, isa: str) -> None:
    command = [EMULATOR, "-cpu", cpu, sys.executable, "-I", "-S", "-c", ASK, str(load().path)]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout.strip() == isa
