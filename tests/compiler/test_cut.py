"""Fusion and cut chosen together."""

import numpy as np
import pytest
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.cut import fuse_and_cut, ways
from hybrid.compiler.partition.partition import Partition, partition
from hybrid.compiler.partition.prices import computing, launching, moving
from hybrid.compiler.quantise.constants import quantised_constants
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.npu_backends.cpu.adapter import CpuAdapter
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.interpret import interpret
from hybrid.npu_backends.preset import load_preset
from hybrid.npu_backends.systolic.adapter import SystolicAdapter
from hybrid.shared_protocol.model import Model

CPU = CpuAdapter(load_preset("host-cpu"))


@pytest.mark.parametrize("preset", ["ethos-u85-2048", "hexagon-v79"])
def test_the_cut_is_never_dearer_than_that_of_any_way_to_fuse(preset: str, tiny_llama: Model) -> None:
    chips = (SystolicAdapter(load_preset(preset)), CPU)

    def cut(graph: Graph) -> Partition:
        return partition(graph, chips, cost=computing(), transfer=moving(graph), launch=launching, host="cpu")

    captured = capture(tiny_llama.architecture, rows=24, logit_rows=1, context=32, name="prefill")
    graph = quantise_graph(captured, "w8a8")
    joined, found = fuse_and_cut(graph, chips, cut)
    assert found.exact
    assert found.seconds == min(cut(way).seconds for way in ways(graph, chips).values()) < cut(graph).seconds
    assert tuple(op for segment in found.segments for op in segment.graph.ops) == joined.ops
    rng = np.random.default_rng(0)
    inputs = {value.name: rng.standard_normal(value.shape).astype(np.float16) for value in graph.inputs if value.dtype == "f16"}
    inputs |= {"position": np.array([5], np.int32), "logit_index": np.array([23], np.int32)}
    inputs |= {"ids": rng.integers(0, 320, 24).astype(np.int32)}
    constants, known = quantised_constants(tiny_llama, graph), dict(inputs)
    for segment in found.segments:
        known |= interpret(segment.graph, constants, known)
    for name, array in interpret(graph, constants, inputs).items():
        np.testing.assert_array_equal(known[name], array)
