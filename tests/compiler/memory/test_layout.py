"""Every value has a place, and a graph that runs in those places computes what the interpreter does."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hybrid.compiler.memory.errors import MemoryTooSmall
from hybrid.compiler.memory.greedy import ORDERS
from hybrid.compiler.memory.layout import Layout, lay_out
from hybrid.compiler.memory.plan import MemoryPlan, make_plan
from hybrid.npu_backends.base import SCRATCH, Placement, Segment
from hybrid.npu_backends.cpu.adapter import CpuAdapter
from hybrid.npu_backends.ir.graph import Graph, subgraph
from hybrid.npu_backends.ir.interpret import interpret
from hybrid.npu_backends.ir.op import Op
from hybrid.npu_backends.ir.value import ARRAYS, Value
from hybrid.npu_backends.preset import load_preset
from hybrid.tests.support.graphs import random_arrays, random_graph

CPU = CpuAdapter(load_preset("host-cpu"))


def planner(buffers: tuple) -> MemoryPlan:
    return make_plan(buffers, ORDERS["size"](buffers), "size")


def cut(graph: Graph, source: random.Random) -> list[Segment]:
    bounds = sorted({0, len(graph.ops), *source.sample(range(len(graph.ops)), 2)})
    return [
        Segment(f"s{low}", source.choice(("npu", "cpu")), subgraph(graph, f"s{low}", graph.ops[low:high])) for low, high in pairwise(bounds)
    ]


def run(graph: Graph, segments: list[Segment], layout: Layout, constants: dict, inputs: dict) -> dict[str, np.ndarray]:
    """All segments one after the other in arenas that begin as rubbish."""
    arenas = {name: np.full(size, 0xFF, np.uint8) for name, size in layout.arenas.items()}
    views = {}
    for name, value in {value.name: value for value in graph.values()}.items():
        if name in layout.placements:
            place = layout.placements[name]
            part = arenas[place.arena][place.offset : place.offset + value.elements * ARRAYS[value.dtype].itemsize]
            views[name] = part.view(ARRAYS[value.dtype]).reshape(value.shape)
    for name, array in inputs.items():
        views[name][:] = array
    for segment in segments:
        handle = CPU.load(CPU.lower(segment, layout.plan_of(segment, {})), constants)
        CPU.run(handle, {value.name: views[value.name] for value in segment.graph.values() if value.name in views})
    return {value.name: views[value.name].copy() for value in graph.outputs}


def test_any_graph_however_it_is_cut_computes_in_its_places_what_the_interpreter_does() -> None:
    for seed in range(60):
        source = random.Random(seed)
        graph = random_graph(source, 14)
        segments = cut(graph, source)
        constants, inputs = random_arrays(graph, seed)
        wanted = interpret(graph, constants, inputs)
        for room in (0, 600, 1 << 20):
            layout = lay_out(graph, segments, planner, alignment=16, scratch={"npu": room})
            assert layout.plans["sram"].size <= room
            found = run(graph, segments, layout, constants, inputs)
            assert found.keys() == wanted.keys()
            for name, array in wanted.items():
                assert found[name].tobytes() == array.tobytes(), f"{name} of the graph of seed {seed} with {room} bytes on the chip"


def chain(count: int) -> Graph:
    values = [Value(f"v{number}", (4, 16), "f32") for number in range(count + 1)]
    gain = Value("gain", (16,), "f32")
    ops = [Op("rms_norm", (x, gain), (y,), (("eps", 1e-5),)) for x, y in pairwise(values)]
    return Graph("chain", (values[0],), (gain,), tuple(ops), (values[-1],))


def test_where_the_chip_has_too_little_room_what_is_read_least_stands_outside() -> None:
    values = [Value(name, (4, 16), "f32") for name in ("x", "once", "twice", "a", "b", "c")]
    x, once, twice, a, b, c = values
    ops = (
        Op("silu", (x,), (twice,)),
        Op("gelu", (x,), (once,)),
        Op("add", (twice, x), (a,)),
        Op("add", (a, twice), (b,)),
        Op("add", (b, once), (c,)),
    )
    graph = Graph("g", (x,), (), ops, (c,))
    segments = [Segment("s", "npu", graph)]
    roomy = lay_out(graph, segments, planner, alignment=16, scratch={"npu": 768})
    assert (roomy.outside, roomy.plans["sram"].size) == (frozenset(), 768)
    tight = lay_out(graph, segments, planner, alignment=16, scratch={"npu": 512})
    assert (tight.outside, tight.plans["sram"].size) == ({"once"}, 512)
    none = lay_out(graph, segments, planner, alignment=16, scratch={"npu": 255})
    assert (none.outside, none.arenas.get("sram")) == ({"once", "twice", "a", "b"}, None)


def test_what_left_the_chip_comes_back_where_room_was_left_in_the_end() -> None:
    #  step    0 1 2 3 4 5 6 7 8 9      768 bytes: `brief` leaves at step 2, being least; then `long` must at step 6, and `brief` fits again
    #  long    |===================|    512 bytes, read once
    #  brief     |=====|                256
    #  twice       |=======|            256, read twice
    #  wide                |=====|      512, read twice
    big, little, gain = Value("big", (8, 16), "f32"), Value("little", (4, 16), "f32"), Value("gain", (16,), "f32")
    long, brief, twice, wide = (replace(of, name=name) for of, name in ((big, "long"), (little, "brief"), (little, "twice"), (big, "wide")))
    reads = [(big, long), (little, brief), (little, twice)]
    outputs = [replace(of, name=f"out{number}") for number, of in enumerate((brief, twice, twice, wide, wide, long))]
    reads += [*zip((brief, twice, twice), outputs[:3], strict=True), (big, wide), *zip((wide, wide, long), outputs[3:], strict=True)]
    ops = tuple(Op("rms_norm", (x, gain), (y,), (("eps", 1e-5),)) for x, y in reads)
    graph = Graph("g", (big, little), (gain,), ops, tuple(outputs))
    layout = lay_out(graph, [Segment("s", "npu", graph)], planner, alignment=16, scratch={"npu": 768})
    assert (layout.outside, layout.plans["sram"].size) == ({"long"}, 512)


def test_tiles_that_leave_no_room_at_all_are_an_error() -> None:
    graph = chain(3)
    with pytest.raises(MemoryTooSmall, match="v2%tiles take 112 bytes at once, the chip has 100"):
        lay_out(graph, [Segment("s", "npu", graph)], planner, alignment=16, scratch={"npu": 100}, staging={"v2": 101})


def test_a_segment_is_told_of_its_own_values_and_of_all_arenas() -> None:
    graph = chain(4)
    segments = [Segment("a", "npu", subgraph(graph, "a", graph.ops[:2])), Segment("b", "cpu", subgraph(graph, "b", graph.ops[2:]))]
    layout = lay_out(graph, segments, planner, alignment=64, scratch={"npu": 4096})
    plan = layout.plan_of(segments[0], {})
    assert set(plan.placements) == {"v0", "v1", "v2"}
    assert (plan.placements["v1"].arena, plan.placements["v2"].arena) == ("sram", "dram")
    assert plan.arenas == layout.arenas == {"sram": 256, "dram": layout.plans["dram"].size}


def test_the_segments_of_a_chip_compute_in_one_place_beside_their_values() -> None:
    graph = chain(4)
    segments = [Segment("a", "npu", subgraph(graph, "a", graph.ops[:2])), Segment("b", "cpu", subgraph(graph, "b", graph.ops[2:]))]
    layout = lay_out(graph, segments, planner, alignment=64, room={"cpu": 128})
    assert layout.arenas["cpu scratch"] == 128 and "npu scratch" not in layout.arenas
    assert layout.plan_of(segments[1], {}).placements[SCRATCH] == Placement("cpu scratch", 0, 128)
    assert SCRATCH not in layout.plan_of(segments[0], {}).placements
