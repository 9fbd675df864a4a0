"""What moving costs between two chips that share a memory, counted by hand."""

from dataclasses import replace

import pytest
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.partition.prices import computing, launching, moving
from hybrid.npu_backends.cpu.adapter import CpuAdapter
from hybrid.npu_backends.ir.value import Value
from hybrid.npu_backends.preset import load_preset
from hybrid.shared_protocol.model import Model

SPEC = load_preset("host-cpu")
SLOW = CpuAdapter(replace(SPEC, clock_hz=1e6, launch_cycles=20, dram=replace(SPEC.dram, bytes_per_cycle=2.0, latency_cycles=3)))
FAST = CpuAdapter(replace(SPEC, clock_hz=2e6, launch_cycles=0, dram=replace(SPEC.dram, bytes_per_cycle=8.0, latency_cycles=4)))


def test_both_wait_for_the_memory_and_the_slower_port_carries(tiny_llama: Model) -> None:
    graph = capture(tiny_llama.architecture, rows=4, logit_rows=1, context=16, name="step")
    # 3 cycles of 1 us and 4 of 0.5 us, then 100 floats at 2 bytes a microsecond
    seconds = (3 + 2 + 400 / 2) * 1e-6
    move = moving(graph)
    assert [move(Value("x", (100,), "f32"), *chips) for chips in ((SLOW, FAST), (FAST, SLOW))] == pytest.approx([seconds, seconds])


def test_of_a_state_only_the_new_rows_are_moved(tiny_llama: Model) -> None:
    graph = capture(tiny_llama.architecture, rows=4, logit_rows=1, context=16, name="step")
    move, arch = moving(graph), tiny_llama.architecture
    before, after = graph.states[0]
    values = {value.name: value for value in graph.values()}
    rows = 4 * arch.num_kv_heads * arch.head_dim * 2  # bytes of f16
    assert move(values[after], SLOW, FAST) == pytest.approx((5 + rows / 2) * 1e-6)
    assert move(values[before], SLOW, FAST) == pytest.approx(5e-6)


def test_seconds_are_by_the_chips_own_clock(tiny_llama: Model) -> None:
    op = capture(tiny_llama.architecture, rows=4, logit_rows=1, context=16, name="step").ops[2]
    assert computing()(SLOW, op) == pytest.approx(SLOW.cost(op).cycles * 1e-6)
    assert (launching(SLOW), launching(FAST)) == (pytest.approx(20e-6), 0)
