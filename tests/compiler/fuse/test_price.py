"""What is joined when the caller has a price of its own."""

import math
from collections.abc import Mapping

from hybrid.compiler.capture.capture import capture
from hybrid.compiler.fuse.fuse import fuse
from hybrid.compiler.fuse.on_chip import fits_on, seconds_on
from hybrid.compiler.fuse.rules import describe
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.npu_backends.cpu.adapter import CpuAdapter
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.op import Op
from hybrid.npu_backends.ir.value import Value
from hybrid.npu_backends.preset import load_preset
from hybrid.npu_backends.systolic.adapter import SystolicAdapter
from hybrid.shared_protocol.model import Model

X, WEIGHTS, GAIN = Value("x", (2, 32), "f32"), Value("weights", (32, 32), "f32"), Value("gain", (32,), "f32")
Y, ACTIVE, OUT = (Value(name, (2, 32), "f32") for name in ("y", "active", "out"))
OPS = (
    *(Op("linear", (X, WEIGHTS), (Y,)), Op("silu", (Y,), (ACTIVE,))),
    Op("rms_norm", (ACTIVE, GAIN), (OUT,), (("eps", 0.0),)),
)
GRAPH = Graph("g", (X,), (WEIGHTS, GAIN), OPS, (OUT,))
APART = {"linear": 10.0, "silu": 2.0, "norm": 3.0}


def joined(prices: Mapping[str, float]) -> list[str]:
    return [describe(op) for op in fuse(GRAPH, lambda op: True, lambda op: (APART | prices)[describe(op)]).ops]


def test_a_step_that_does_not_pay_is_taken_for_the_sake_of_the_next() -> None:
    assert joined({"linear + silu": 13, "linear + silu + norm": 14}) == ["linear + silu + norm"]


def test_a_join_ends_where_it_is_the_cheapest() -> None:
    assert joined({"linear + silu": 11, "linear + silu + norm": 15}) == ["linear + silu", "norm"]
    assert joined({"linear + silu": 13, "linear + silu + norm": 16}) == ["linear", "silu", "norm"]


def test_what_a_chip_takes_only_as_a_part_of_something_is_joined_at_any_price() -> None:
    assert joined({"silu": math.inf, "linear + silu": 99, "linear + silu + norm": 103}) == ["linear + silu", "norm"]
    assert joined({"linear + silu": math.inf, "linear + silu + norm": math.inf}) == ["linear", "silu", "norm"]


def test_fusion_for_a_chip_never_makes_its_work_longer(tiny_llama: Model) -> None:
    npu, cpu = SystolicAdapter(load_preset("ethos-u85-2048")), CpuAdapter(load_preset("host-cpu"))
    for rows in (1, 40):
        graph = quantise_graph(capture(tiny_llama.architecture, rows=rows, logit_rows=1, context=64, name="step"), "w8a8")
        fits, price = fits_on(npu, cpu), seconds_on(npu, cpu)
        after = fuse(graph, fits, price)
        assert all(fits(op) for op in after.ops if op.body)
        assert sum(map(price, after.ops)) < sum(map(price, graph.ops))
