"""The processor as an adapter: it computes as the interpreter does, where the plan says, and takes no artifact that is not whole."""

import numpy as np
import pytest
from hybrid.npu_backends.base import SCRATCH, Artifact, Placement, Plan, Segment
from hybrid.npu_backends.cpu.adapter import CpuAdapter
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.interpret import interpret
from hybrid.npu_backends.ir.op import Op, fused
from hybrid.npu_backends.ir.value import Value
from hybrid.npu_backends.preset import load_preset
from hybrid.shared_protocol.compile_errors import ArtifactRejected, PlanInvalid

X, GAIN, WEIGHTS = Value("x", (2, 4), "f32"), Value("gain", (4,), "f32"), Value("weights", (3, 4), "f32")
NORMED, Y = Value("normed", (2, 4), "f32"), Value("y", (2, 3), "f32")
CACHE, AFTER = Value("cache", (1, 8, 3), "f16"), Value("after", (1, 8, 3), "f16")
ROWS, WHERE = Value("rows", (2, 1, 3), "f32"), Value("where", (1,), "i32")
NORM, LINEAR = Op("rms_norm", (X, GAIN), (NORMED,), (("eps", 1e-5),)), Op("linear", (NORMED, WEIGHTS), (Y,))
WRITE = (Op("reshape", (Y,), (ROWS,)), Op("cache_write", (CACHE, ROWS, WHERE), (AFTER,)))
GRAPH = Graph("g", (X, CACHE, WHERE), (GAIN, WEIGHTS), (fused((NORM, LINEAR), (Y,)), *WRITE), (Y, AFTER), (("cache", "after"),))
PLAN = Plan(
    placements={
        "x": Placement("sram", 0, 32),
        "y": Placement("sram", 32, 24),
        "rows": Placement("sram", 32, 24),
        "where": Placement("sram", 56, 4),
        "cache": Placement("kv", 0, 48),
        "after": Placement("kv", 0, 48),
    },
    arenas={"sram": 64, "kv": 48},
    tilings={},
)
CPU = CpuAdapter(load_preset("host-cpu"))
CONSTANTS = {"gain": np.array([1, 2, 1, 1], np.float32), "weights": np.arange(12, dtype=np.float32).reshape(3, 4) - 6}


def lowered(plan: Plan = PLAN) -> Artifact:
    return CPU.lower(Segment("g", "cpu", GRAPH), plan)


def test_a_segment_computes_what_the_interpreter_does_in_the_places_of_the_plan() -> None:
    arenas = {name: np.zeros(size, np.uint8) for name, size in PLAN.arenas.items()}
    kinds = {"f32": np.float32, "f16": np.float16, "i32": np.int32}
    buffers = {}
    for value in (X, Y, ROWS, WHERE, CACHE, AFTER):
        place = PLAN.placements[value.name]
        part = arenas[place.arena][place.offset : place.offset + value.bytes]
        buffers[value.name] = part.view(kinds[value.dtype]).reshape(value.shape)
    buffers["x"][:] = [[1, 2, 3, 4], [4, 3, 2, -1]]
    buffers["where"][:] = 5
    wanted = interpret(GRAPH, CONSTANTS, {name: buffers[name].copy() for name in ("x", "cache", "where")})
    CPU.run(CPU.load(lowered(), CONSTANTS), buffers)
    np.testing.assert_array_equal(buffers["y"], wanted["y"])
    np.testing.assert_array_equal(buffers["after"], wanted["after"])
    assert buffers["cache"][0, 5:7].any() and not buffers["cache"][0, :5].any()


def test_the_same_segment_gives_the_same_bytes_whatever_the_order_of_its_plan() -> None:
    turned = Plan(dict(reversed(PLAN.placements.items())), dict(reversed(PLAN.arenas.items())), {})
    assert lowered() == lowered(turned)


def test_bytes_that_are_torn_foreign_or_wrong_inside_are_refused() -> None:
    whole = lowered()
    with pytest.raises(ArtifactRejected, match="SHA-256"):
        CPU.load(Artifact(whole.data[:-1], whole.sha256, whole.abi), CONSTANTS)
    with pytest.raises(ArtifactRejected, match="does not hold together"):
        CPU.load(Artifact.of(whole.data[:-1], whole.abi), CONSTANTS)
    with pytest.raises(ArtifactRejected, match="'toy-1'"):
        CPU.load(Artifact.of(whole.data, "toy-1"), CONSTANTS)
    with pytest.raises(ArtifactRejected, match="outside its arena"):
        CPU.load(lowered(Plan(PLAN.placements, {"sram": 32, "kv": 48}, {})), CONSTANTS)
    with pytest.raises(ArtifactRejected, match="no place"):
        CPU.load(lowered(Plan({**PLAN.placements, "y": Placement("sram", 32, 20)}, PLAN.arenas, {})), CONSTANTS)
    with pytest.raises(ArtifactRejected, match="weights"):
        CPU.load(whole, {"gain": CONSTANTS["gain"]})


def test_it_computes_in_the_scratch_that_is_planned_or_refuses_one_that_is_too_small() -> None:
    needed = CPU.scratch_bytes(Segment("g", "cpu", GRAPH), {})
    values = {"x": np.ones((2, 4), np.float32), "y": np.zeros((2, 3), np.float32), "where": np.zeros(1, np.int32)}
    values |= {"rows": values["y"].reshape(2, 1, 3), "cache": np.zeros((1, 8, 3), np.float16)}
    values["after"] = values["cache"]

    def planned(size: int) -> Plan:
        return Plan({**PLAN.placements, SCRATCH: Placement("room", 0, size)}, {**PLAN.arenas, "room": size}, {})

    handle = CPU.load(lowered(planned(needed)), CONSTANTS)
    CPU.run(handle, {**values, SCRATCH: np.zeros(needed, np.uint8)})
    assert values["y"].any()
    with pytest.raises(PlanInvalid, match="no buffer"):
        CPU.run(handle, values)
    with pytest.raises(PlanInvalid, match=f"{needed - 1} bytes"):
        CPU.run(handle, {**values, SCRATCH: np.zeros(needed - 1, np.uint8)})
    with pytest.raises(ArtifactRejected, match=f"{needed - 1} bytes of scratch"):
        CPU.load(lowered(planned(needed - 1)), CONSTANTS)
