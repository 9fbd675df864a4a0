"""The simulated chip computes what the interpreter does, to the bit, and a run takes what was said before it ran."""

import random
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hybrid.compiler.fuse.fuse import fuse
from hybrid.npu_backends.base import NOTHING, Artifact, Segment, Tiling
from hybrid.npu_backends.conformance.cases import CASES as KIT_CASES
from hybrid.npu_backends.conformance.cases import TAILS, arrays_of, graph_of
from hybrid.npu_backends.conformance.place import guarded, plan_of
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.interpret import interpret
from hybrid.npu_backends.ir.op import Op
from hybrid.npu_backends.ir.semantics import Array
from hybrid.npu_backends.ir.value import Value
from hybrid.npu_backends.preset import load_preset
from hybrid.npu_backends.spec import Spec
from hybrid.npu_backends.systolic.adapter import SystolicAdapter
from hybrid.npu_backends.systolic.cycles import gemm_cycles
from hybrid.npu_backends.systolic.dma import load_cycles, store_cycles
from hybrid.npu_backends.systolic.program import Program
from hybrid.shared_protocol.compile_errors import ArtifactRejected, DoesNotFit, PlanInvalid
from hybrid.shared_protocol.errors import InvalidRequest
from hybrid.tests.support.graphs import random_arrays, random_graph

EVERYTHING = replace(
    load_preset("systolic-32"), name="everything", weight_formats=("int8_channel", "int8_group32", "int4_group32", "f16", "f32")
)
CHIP = SystolicAdapter(EVERYTHING)
CASES = {case.name: case.make(TAILS) for case in KIT_CASES}


def run(chip: SystolicAdapter, graph: Graph, arrays: tuple[dict, dict], tilings: dict[str, Tiling]) -> tuple[dict[str, Array], int]:
    """The outputs, and the cycles that were counted, which are those that were said."""
    constants, inputs = arrays
    plan = plan_of(graph, tilings, chip.spec.alignment)
    memory = guarded(graph, plan, inputs)
    handle = chip.load(chip.lower(Segment(graph.name, "systolic", graph), plan), constants)
    chip.run(handle, memory.buffers)
    record = chip.count(handle)
    said = sum((chip.cost(op, tilings.get(op.name)) for op in graph.ops), NOTHING)
    assert record.cost.cycles - chip.spec.launch_cycles == said.cycles == record.timeline().cycles
    assert (record.cost.bytes, record.cost.joules) == (said.bytes, pytest.approx(said.joules))
    busy = record.timeline().busy
    assert (busy["array"], busy["vector"]) == (record.array_cycles, record.vector_cycles)
    assert busy["dma_in"] + busy["dma_out"] == record.dma_cycles and all(0 <= op.counted.hidden_dma <= 1 for op in record.ops)
    assert not memory.strays()
    return {value.name: memory.buffers[value.name] for value in graph.outputs}, said.cycles


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_any_graph_tiled_in_any_way_gives_the_interpreters_bits_and_takes_what_was_said(seed: int, joined: bool) -> None:
    source = random.Random(seed)
    graph = random_graph(source, 12)
    if joined:
        graph = fuse(graph, lambda op: CHIP.supports(op) is None)
    arrays = random_arrays(graph, seed)
    wanted = interpret(graph, *arrays)
    tilings = {
        op.name: Tiling(
            source.choice(("os", "ws", "is")), source.choice((1, 2)), source.choice((5, 24, 64)), 32, source.choice(("mnk", "knm"))
        )
        for op in graph.ops
        if source.random() < 0.7
    }
    found, _ = run(CHIP, graph, arrays, tilings)
    for name, array in wanted.items():
        np.testing.assert_array_equal(array, found[name])


def test_a_products_cycles_are_the_arrays_closed_form_and_the_transfers_around_it() -> None:
    op = CASES["linear_i8"]  # 5 rows of 96 inputs, 37 outputs: one tile
    spec = EVERYTHING
    coming = 5 * 96 + 4 * 5 + 37 * 96 + 4 * 37
    requantised = -(-2 * 5 * 37 // spec.vector_lanes)
    wanted = load_cycles(coming, spec) + gemm_cycles(5, 37, 96, spec.array, "os") + requantised + store_cycles(4 * 5 * 37, spec)
    cost = CHIP.cost(op, Tiling("os", 5, 37, 96, "mnk"))
    assert (cost.cycles, cost.bytes) == (wanted, coming + 4 * 5 * 37)


def test_the_next_tile_comes_in_while_the_array_works() -> None:
    """Two tiles of outputs: the second load is hidden behind the first one's arithmetic, or the other way round."""
    op, spec = CASES["linear_i8"], EVERYTHING
    whole, tiled = CHIP.cost(op, Tiling("os", 5, 37, 96, "mnk")), CHIP.cost(op, Tiling("os", 5, 32, 96, "mnk"))
    loads = [load_cycles(500 + 32 * 100, spec), load_cycles(5 * 100, spec)]
    array = [gemm_cycles(5, 32, 96, spec.array, "os") + 10, gemm_cycles(5, 5, 96, spec.array, "os") + 2]
    assert tiled.bytes == whole.bytes
    assert tiled.cycles == loads[0] + max(array[0], loads[1]) + array[1] + store_cycles(4 * 5 * 5, spec)


def lacking(**changes: object) -> Spec:
    return replace(EVERYTHING, name="lacking", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "kind", "told"),
    [
        (lacking(weight_formats=("f16",)), "linear_i8", "weights are int8_channel, and the array of lacking takes f16 only"),
        (lacking(weight_formats=("int8_channel",)), "linear_g32 u4 offsets", "weights are int4_group32"),
        (lacking(weight_formats=("int8_channel",)), "scores f16", "multiplies f16 with floats"),
        (lacking(weight_formats=("int8_channel", "f16")), "scores f32 softcap window", "multiplies f32 with floats"),
        (lacking(weight_formats=("f16",)), "linear", "weights are f32"),
        (lacking(vector_lanes=0), "silu", "silu is float arithmetic, and lacking has no vector lanes"),
        (lacking(vector_lanes=0), "linear_i8", "requantise is float arithmetic"),
    ],
)
def test_what_a_chip_lacks_is_the_reason_why_it_refuses(spec: Spec, kind: str, told: str) -> None:
    chip = SystolicAdapter(spec)
    reason = chip.supports(CASES[kind])
    assert reason is not None and told in reason
    graph = graph_of(CASES[kind])
    with pytest.raises(DoesNotFit, match=r"does not run on lacking"):
        chip.lower(Segment("s", "systolic", graph), plan_of(graph, {}, 64))


def test_a_row_that_does_not_fit_the_memory_is_refused_with_what_it_needs() -> None:
    x, y = Value("x", (1, 1 << 20), "f32"), Value("y", (1, 1 << 20), "f32")
    assert CHIP.supports(Op("silu", (x,), (y,))) == "its smallest tiles need 16777216 bytes of SRAM, everything has 524288"


def test_a_head_of_keys_has_room_once_where_it_has_not_twice() -> None:
    """3,000 positions of 64 halves are 384,000 bytes of 524,288: the keys of the next head wait until those of this one have been used."""
    op = next(case for case in KIT_CASES if case.name == "scores f16").make({**TAILS, "R": 1, "H": 2, "KH": 2, "D": 64, "C": 3000})
    assert CHIP.supports(op) is None
    assert 384_000 < CHIP.working_bytes(op) <= EVERYTHING.sram.bytes
    graph = graph_of(op)
    arrays = arrays_of(graph, 0)
    found, _ = run(CHIP, graph, arrays, {})
    np.testing.assert_array_equal(found["y"], interpret(graph, *arrays)["y"])
    small = next(case for case in KIT_CASES if case.name == "scores f16").make(TAILS)
    assert CHIP.cost(small, Tiling("os", 1, 1, 32, "mnk")).cycles > CHIP.cost(small, Tiling("os", 1, 2, 32, "mnk")).cycles


def test_a_tiling_too_large_for_the_chip_is_made_smaller() -> None:
    weights = [Value("weights", (4096, 4096), "i8"), Value("factors", (4096,), "f32")]
    op = Op("linear_i8", (Value("codes", (1, 4096), "i8"), Value("scales", (1,), "f32"), *weights), (Value("y", (1, 4096), "f32"),))
    everything_at_once = Tiling("os", 1, 4096, 4096, "mnk")
    assert CHIP.working_bytes(op, everything_at_once) <= EVERYTHING.sram.bytes < 4096 * 4096
    chosen = CHIP.tiling(op)
    assert CHIP.cost(op) == CHIP.cost(op, chosen)
    assert CHIP.cost(op, chosen).cycles <= CHIP.cost(op, everything_at_once).cycles


GRAPH = graph_of(CASES["linear_i8"])
PLAN = plan_of(GRAPH, {}, 64)
LOWERED = CHIP.lower(Segment("s", "systolic", GRAPH), PLAN)
CONSTANTS, INPUTS = arrays_of(GRAPH, 0)


def forged(change: dict) -> Artifact:
    """The artifact with some of its program changed, and a SHA-256 to match."""
    return Artifact.of(msgspec.msgpack.encode(msgspec.msgpack.decode(LOWERED.data) | change), LOWERED.abi)


def reaching(position: int, value: int) -> dict:
    """The kernels with one number of the first load's source changed."""
    kernels = msgspec.msgpack.decode(LOWERED.data)["kernels"]
    kernels[0][2][0][2][0][position] = value
    return {"kernels": kernels}


def swollen() -> dict:
    """The kernels with a slot that only the simulation needs, of a size that no machine has."""
    kernels = msgspec.msgpack.decode(LOWERED.data)["kernels"]
    kernels[0][1][-1][0] = 1 << 60
    kernels[0][1][-1][2] = 0
    return {"kernels": kernels}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (swollen(), "bytes to be simulated"),
        ({"chip": "tpu-v1 0123456789abcdef"}, "is for tpu-v1"),
        ({"calls": []}, "0 calls for 1 operations"),
        ({"kernels": []}, "not one of linear_i8"),
        (reaching(0, 9), "reaches beyond"),
        (reaching(3, 1000), "reaches beyond"),
        (reaching(5, 97), "reaches beyond"),
        (reaching(2, -1), "reaches beyond"),
        (reaching(3, 4), "do not fit together"),
        ({"more": 1}, "does not hold together"),
    ],
)
def test_a_program_that_was_changed_is_refused_though_its_digest_is_right(change: dict, told: str) -> None:
    with pytest.raises(ArtifactRejected, match=told):
        CHIP.load(forged(change), CONSTANTS)


def test_an_artifact_runs_on_the_chip_that_it_was_cut_for_only() -> None:
    assert isinstance(CHIP.load(LOWERED, CONSTANTS).program, Program)
    with pytest.raises(ArtifactRejected, match="is for everything"):
        SystolicAdapter(load_preset("tpu-v1")).load(LOWERED, CONSTANTS)


def test_buffers_and_positions_that_are_not_there_are_told_by_name() -> None:
    handle = CHIP.load(LOWERED, CONSTANTS)
    with pytest.raises(PlanInvalid, match="codes is placed"):
        CHIP.run(handle, {})
    graph = graph_of(CASES["cache_write f16"])
    constants, inputs = arrays_of(graph, 0)
    plan = plan_of(graph, {}, 64)
    memory = guarded(graph, plan, inputs | {"position": np.array([18], np.int32)})
    with pytest.raises(InvalidRequest, match="beyond"):
        CHIP.run(CHIP.load(CHIP.lower(Segment("s", "systolic", graph), plan), constants), memory.buffers)


def test_a_position_without_a_place_in_the_cache_is_told() -> None:
    graph = graph_of(CASES["scores f16"])  # 5 rows, 19 positions
    constants, inputs = arrays_of(graph, 0)
    plan = plan_of(graph, {}, 64)
    handle = CHIP.load(CHIP.lower(Segment("s", "systolic", graph), plan), constants)
    CHIP.run(handle, guarded(graph, plan, inputs | {"position": np.array([14], np.int32)}).buffers)
    with pytest.raises(InvalidRequest, match="row 4 at position 15 is beyond the 19 positions"):
        CHIP.run(handle, guarded(graph, plan, inputs | {"position": np.array([15], np.int32)}).buffers)


def test_a_dataflow_that_the_array_does_not_have_is_replaced_by_its_usual_one() -> None:
    chip = SystolicAdapter(load_preset("eyeriss"))
    assert chip.cost(CASES["linear_i8"], Tiling("os", 5, 14, 96, "mnk")) == chip.cost(CASES["linear_i8"], Tiling("ws", 5, 14, 96, "mnk"))
