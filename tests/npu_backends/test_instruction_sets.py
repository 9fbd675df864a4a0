"""Instruction sets that round alike compute alike, whatever their registers hold."""

import numpy as np
import pytest
from hybrid.npu_backends.cpu.library import load
from hybrid.npu_backends.cpu.matrix import multiply, pack
from hybrid.tests.support.blocks import FINITE_HALVES, TYPES, random_tensor
from hybrid.tests.support.executors import ISAS

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
