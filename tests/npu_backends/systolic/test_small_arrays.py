"""An array of a few elements is so slow that nearly every tiling is as good as the best: few of them are counted all the same."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from hybrid.compiler.compile import compile_model, facts_of
from hybrid.compiler.program import Shape
from hybrid.npu_backends.preset import load_preset
from hybrid.npu_backends.spec import Array
from hybrid.npu_backends.systolic import tiling
from hybrid.npu_backends.systolic.choices import FEWEST, several
from hybrid.npu_backends.systolic.gemm import Gemm
from hybrid.npu_backends.systolic.tiling import tile_product
from hybrid.shared_protocol.model import Model
from hypothesis import example, given, settings
from hypothesis import strategies as st

CHIP = load_preset("systolic-32")
SIDES = st.integers(1, FEWEST)
MOST = 100  # choices counted step by step; in multiples of one element there are 984 for the example


@settings(max_examples=15, deadline=None)
@example(rows=1, cols=1, gemm=Gemm(32, 64, 64, inputs_in="sram"), tight=False)
@given(rows=SIDES, cols=SIDES, gemm=st.builds(Gemm, m=st.integers(1, 32), n=st.integers(1, 64), k=st.integers(1, 64)), tight=st.booleans())
def test_a_product_on_a_small_array_fits_takes_no_less_than_its_work_and_few_choices_are_counted(
    rows: int, cols: int, gemm: Gemm, tight: bool
) -> None:
    chip = replace(CHIP, array=Array(rows, cols))
    room = 1024 if tight else chip.sram.bytes  # no chip has less
    with patch.object(tiling, "count", wraps=tiling.count) as counting:
        found = tile_product.__wrapped__(gemm, chip, room)
    assert found.counted.sram_needed <= room
    assert found.cost.cycles >= gemm.macs / chip.array.macs_per_cycle
    assert counting.call_count <= MOST


def test_where_only_tiles_of_the_arrays_own_size_fit_they_are_found() -> None:
    found = tile_product(Gemm(4, 4, 64), replace(CHIP, array=Array(1, 1)), 100)
    assert min(found.tiling.tm, found.tiling.tn, found.tiling.tk) < FEWEST
    assert found.counted.sram_needed <= 100


@given(side=st.integers(1, 4096))
def test_sides_are_taken_whole_and_as_often_as_makes_the_fewest(side: int) -> None:
    assert several(side) % side == 0 and several(side) >= FEWEST
    assert several(side) == side or several(side) - side < FEWEST


def test_a_model_is_compiled_for_one_element(tiny_llama: Model) -> None:
    one, many = (
        compile_model(
            tiny_llama, facts_of(tiny_llama, replace(CHIP, name=f"side-{side}", array=Array(side, side)), context=32, shapes=[Shape(1, 1)])
        )
        for side in (1, 32)
    )
    assert one.programs[0].seconds >= many.programs[0].seconds
