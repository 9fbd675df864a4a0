"""The chosen tiling is the one that counting every choice would give, it fits, and its traffic is what a walk over its tiles moves."""

import itertools
from dataclasses import replace

import pytest
from hybrid.npu_backends.base import Tiling
from hybrid.npu_backends.preset import load_preset
from hybrid.npu_backends.spec import Array, Memory, Spec
from hybrid.npu_backends.systolic.choices import ORDERS, all_choices, sizes
from hybrid.npu_backends.systolic.energy import joules
from hybrid.npu_backends.systolic.gemm import Gemm
from hybrid.npu_backends.systolic.io_bound import io_bound_bytes
from hybrid.npu_backends.systolic.loops import count, sram_needed
from hybrid.npu_backends.systolic.roofline import most_tokens_per_second, ridge, roof
from hybrid.npu_backends.systolic.tiling import tile_product
from hybrid.shared_protocol.compile_errors import DoesNotFit
from hybrid.shared_protocol.errors import InvalidRequest
from hypothesis import given, settings
from hypothesis import strategies as st

SMALL = replace(
    load_preset("systolic-32"),
    name="small",
    array=Array(4, 8),
    sram=Memory("sram", 3_000, 16.0, 4, 16, 8),
    dram=Memory("dram", 1 << 20, 2.5, 20, 32, 4),
)
PLACES = st.sampled_from(["dram", "sram"])
GEMMS = st.builds(
    Gemm,
    m=st.integers(1, 40),
    n=st.integers(1, 60),
    k=st.integers(1, 150),
    weight_bits=st.sampled_from([4.5, 5, 8]),
    output_bits=st.sampled_from([8, 32]),
    inputs_in=PLACES,
    outputs_in=PLACES,
)


@settings(max_examples=15, deadline=None)
@given(gemm=GEMMS, room=st.sampled_from([1_500, 3_000, 20_000]))
def test_the_search_finds_what_counting_every_choice_finds(gemm: Gemm, room: int) -> None:
    choices = all_choices(gemm, SMALL, room)
    counted = [count(gemm, choices[index], SMALL) for index in range(len(choices))]
    for index, got in enumerate(counted):
        assert choices.cycles[index] <= got.cycles and choices.dram_bytes[index] <= got.dram_bytes, got.tiling
        assert got.sram_needed <= room
    found = tile_product(gemm, SMALL, room)
    fewest = min(got.cycles for got in counted)
    as_good = [got for got in counted if got.cycles <= fewest + fewest // 100]
    assert found.fewest_cycles == fewest and found.choices == len(counted)
    assert (found.counted.dram_bytes, found.cost.cycles) == min((got.dram_bytes, got.cycles) for got in as_good)


@settings(max_examples=40, deadline=None)
@given(gemm=GEMMS)
def test_choices_are_all_tiles_of_every_order_that_fit_and_none_twice(gemm: Gemm) -> None:
    room = 3_000
    choices = all_choices(gemm, SMALL, room)
    kept = [choices[index] for index in range(len(choices))]
    walks = set()
    for tiling in kept:
        counts = {"m": -(-gemm.m // tiling.tm), "n": -(-gemm.n // tiling.tn), "k": -(-gemm.k // tiling.tk)}
        walks.add((tiling.dataflow, tiling.tm, tiling.tn, tiling.tk, "".join(letter for letter in tiling.order if counts[letter] > 1)))
    assert len(walks) == len(kept)
    expected = set()
    for dataflow, (um, un, uk) in {"os": (4, 8, 32), "ws": (32, 8, 4), "is": (8, 32, 4)}.items():
        for tm, tn, tk, order in itertools.product(sizes(gemm.m, um), sizes(gemm.n, un), sizes(gemm.k, uk), ORDERS):
            if sram_needed(gemm, Tiling(dataflow, tm, tn, tk, order)) <= room:
                counts = {"m": -(-gemm.m // tm), "n": -(-gemm.n // tn), "k": -(-gemm.k // tk)}
                expected.add((dataflow, tm, tn, tk, "".join(letter for letter in order if counts[letter] > 1)))
    assert walks == expected


@settings(max_examples=60, deadline=None)
@given(gemm=GEMMS, tm=st.integers(1, 40), tn=st.integers(1, 60), tk=st.integers(1, 150), order=st.sampled_from(ORDERS))
def test_traffic_is_what_a_walk_with_room_for_one_tile_of_each_operand_moves(gemm: Gemm, tm: int, tn: int, tk: int, order: str) -> None:
    tiling = Tiling("os", max(tm, gemm.m // 6), max(tn, gemm.n // 6), max(tk, gemm.k // 6), order)
    spans = {
        letter: [(at, min(at + tile, size)) for at in range(0, size, tile)]
        for letter, size, tile in (("m", gemm.m, tiling.tm), ("n", gemm.n, tiling.tn), ("k", gemm.k, tiling.tk))
    }
    held: dict[str, object] = {}
    done: dict[object, int] = {}
    moved = 0

    def put_back() -> int:
        if gemm.outputs_in == "sram" or "sums" not in held:
            return 0
        (m0, m1), (n0, n1) = held["sums"]  # type: ignore[misc]
        whole = done[held["sums"]] == gemm.k
        return gemm.output_bytes(m1 - m0, n1 - n0) if whole else gemm.sum_bytes(m1 - m0, n1 - n0)

    for spot in itertools.product(*(spans[letter] for letter in order)):
        at = dict(zip(order, spot, strict=True))
        (m0, m1), (n0, n1), (k0, k1) = at["m"], at["n"], at["k"]
        if held.get("inputs") != (at["m"], at["k"]) and gemm.inputs_in == "dram":
            moved += gemm.input_bytes(m1 - m0, k1 - k0)
        if held.get("weights") != (at["k"], at["n"]):
            moved += gemm.weight_bytes(k1 - k0, n1 - n0)
        sums = (at["m"], at["n"])
        if held.get("sums") != sums:
            moved += put_back()
            moved += gemm.sum_bytes(m1 - m0, n1 - n0) if done.get(sums) and gemm.outputs_in == "dram" else 0
        held = {"inputs": (at["m"], at["k"]), "weights": (at["k"], at["n"]), "sums": sums}
        done[sums] = done.get(sums, 0) + k1 - k0
    moved += put_back()
    counted = count(gemm, tiling, SMALL)
    assert counted.dram_bytes == moved
    assert counted.steps == len(spans["m"]) * len(spans["n"]) * len(spans["k"])
    energy = joules(SMALL.energy, macs=gemm.macs, sram_bytes=counted.sram_bytes, dram_bytes=moved)
    assert counted.joules == energy > 0


@settings(max_examples=60, deadline=None)
@given(gemm=GEMMS, room=st.sampled_from([1_500, 3_000, 20_000]))
def test_no_tiling_moves_less_than_the_bound(gemm: Gemm, room: int) -> None:
    found = tile_product(gemm, SMALL, room)
    assert 0 < found.io_bound_bytes <= found.counted.dram_bytes and found.traffic_ratio >= 1


def test_the_bound_of_a_large_product_is_that_of_reloading_and_of_a_thin_one_that_of_reading_once() -> None:
    # 2 x 4096^3 / sqrt(65536) elements of one byte less 2 x 65536; sums of one byte too, so the sizes of elements cancel
    assert io_bound_bytes(Gemm(4096, 4096, 4096, output_bits=8), 65_536) == 2 * 4096**3 // 256 - 2 * 65_536
    assert io_bound_bytes(Gemm(1, 1536, 576), 65_536) == 1536 * 576 + 576 + 4 * 1536
    assert io_bound_bytes(Gemm(1, 1536, 576, weight_bits=5, inputs_in="sram", outputs_in="sram"), 65_536) == 1536 * 576 * 5 // 8


@settings(max_examples=30, deadline=None)
@given(gemm=GEMMS, tiling=st.builds(Tiling, st.sampled_from(["os", "ws", "is"]), *[st.integers(8, 40)] * 3, st.sampled_from(ORDERS)))
def test_with_one_tiling_no_size_grows_without_cycles_staying_or_growing(gemm: Gemm, tiling: Tiling) -> None:
    cycles = count(gemm, tiling, SMALL).cycles
    for size in ("m", "n", "k"):
        assert count(replace(gemm, **{size: getattr(gemm, size) + 1}), tiling, SMALL).cycles >= cycles


@pytest.mark.parametrize("chip", ["ethos-u85-256", "ethos-u85-2048", "systolic-32", "hexagon-v79"])
def test_decoding_is_bound_by_the_weights_and_sixteen_rows_cost_hardly_more_than_one(chip: str) -> None:
    spec = load_preset(chip)
    one, many = (tile_product(Gemm(rows, 1536, 576), spec) for rows in (1, 16))
    assert one.counted.bound_by == many.counted.bound_by == "load"
    assert one.fewest_cycles <= many.fewest_cycles <= 1.06 * one.fewest_cycles
    assert one.traffic_ratio < 1.01
    streaming = 1536 * 576 / spec.dram.sustained_bytes_per_cycle
    assert streaming <= one.fewest_cycles <= 1.3 * streaming


def test_one_row_does_not_choose_to_keep_weights_in_the_array() -> None:
    # a fold of weights is loaded for 32 cycles to be used by a single row
    spec = load_preset("systolic-32")
    ample = replace(spec, dram=replace(spec.dram, bytes_per_cycle=4096.0, outstanding=8192))
    assert tile_product(Gemm(1, 576, 576), ample).tiling.dataflow != "ws"
    # many rows over few weights
    assert tile_product(Gemm(4096, 32, 32), ample).tiling.dataflow == "ws"


def test_a_chip_uses_only_the_dataflows_that_it_has() -> None:
    spec = replace(SMALL, array=Array(4, 8, ("ws",)))
    assert tile_product(Gemm(1, 60, 60), spec).tiling.dataflow == "ws"


def test_what_cannot_fit_says_what_it_needs() -> None:
    # ws: one row of inputs 4 deep twice, 4 x 8 weights twice, 8 sums of 4 bytes twice
    with pytest.raises(DoesNotFit, match=r"needs 136 bytes .* 100 are free"):
        tile_product(Gemm(1, 60, 60), SMALL, 100)
    assert tile_product(Gemm(1, 60, 60), SMALL, 136).counted.sram_needed == 136


@pytest.mark.parametrize("wrong", [{"m": 0}, {"k": -3}, {"weight_bits": 0}, {"output_bits": float("nan")}])
def test_a_product_of_nothing_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest):
        Gemm(**{"m": 1, "n": 1, "k": 1} | wrong)  # type: ignore[arg-type]


def test_the_roof_is_the_memory_below_the_ridge_and_the_array_above_it() -> None:
    # 256 MACs a cycle, 12 bytes a cycle, 1 GHz
    spec: Spec = replace(load_preset("ethos-u85-256"), dram=Memory("dram", 1 << 32, 12.0, 500, 128, 64))
    assert ridge(spec) == pytest.approx(256 / 12)
    low, high = roof(1000, 1000, 100, spec), roof(100_000, 1000, 1000, spec)
    assert (low.bound_by, low.attainable_macs) == ("bandwidth", pytest.approx(12e9))
    assert (high.bound_by, high.attainable_macs) == ("compute", 256e9)
    assert high.reached == pytest.approx(100e9 / 256e9)
    assert roof(10, 0, 1, spec).bound_by == "compute"
    # 0.84 GB of weights at 12 GB/s: 14 tokens a second
    assert most_tokens_per_second(840_000_000, 0, spec) == pytest.approx(14.3, abs=0.05)
