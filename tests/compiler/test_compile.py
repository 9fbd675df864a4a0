"""From a model to programs: what fits, what does not and why, and that one compiled model is one set of weights."""

from __future__ import annotations

import dataclasses

import pytest
from hybrid.compiler.capture.sequence import SequenceRun
from hybrid.compiler.compile import compile_model, facts_of
from hybrid.compiler.describe import describe
from hybrid.compiler.memory.paging import page_tasks
from hybrid.compiler.program import Compiled, Flash, Shape
from hybrid.npu_backends.ir.op import flat
from hybrid.npu_backends.preset import load_preset
from hybrid.npu_backends.spec import Spec
from hybrid.npu_backends.systolic.timeline import schedule
from hybrid.shared_protocol.compile_errors import CompileError, DoesNotFit
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.networks import random_network

SHAPES = (Shape(8, 1), Shape(4, 4), Shape(1, 1))
SLOW = dataclasses.replace(load_preset("host-cpu"), clock_hz=1e6)  # so that a tiny model is worth handing to a chip


def with_memory(spec: Spec, size: int) -> Spec:
    return dataclasses.replace(spec, dram=dataclasses.replace(spec.dram, bytes=size))


def test_programs_share_constants_and_the_places_of_states(tiny_llama: Model) -> None:
    compiled = compile_model(tiny_llama, facts_of(tiny_llama, load_preset("systolic-32"), context=64, shapes=SHAPES))
    assert [program.shape for program in compiled.programs] == list(SHAPES)
    first = compiled.programs[0]
    for program in compiled.programs:
        assert {value.name for value in program.graph.constants} <= compiled.constants.keys()
        places = [{name: p.layout.placements[name] for pair in p.graph.states for name in pair} for p in (first, program)]
        assert places[0] == places[1]
    assert compiled.arenas == {name: max(p.layout.arenas.get(name, 0) for p in compiled.programs) for name in compiled.arenas}
    head_dim, kv_heads, layers = 16, 2, 2
    assert compiled.arenas["kv"] == 64 * head_dim * kv_heads * layers * 2 * 2


def test_every_operation_is_in_a_segment_and_segments_compute_what_the_whole_graph_does(tiny_llama: Model) -> None:
    for preset in ("systolic-32", "ethos-u85-2048"):
        compiled = compile_model(tiny_llama, facts_of(tiny_llama, load_preset(preset), context=16, shapes=(Shape(4, 4),), host=SLOW))
        (program,) = compiled.programs
        assert [op for lowered in program.segments for op in lowered.segment.graph.ops] == list(program.graph.ops)
        assert "systolic" in {lowered.segment.chip for lowered in program.segments}
        assert program.seconds > 0
        run = SequenceRun(program.graph, compiled.constants)
        assert run.feed(program.graph, [1, 2, 3])["logits"].shape == (4, 320)


def test_a_model_that_is_too_large_is_refused_with_what_would_fit(tiny_llama: Model) -> None:
    spec = load_preset("systolic-32")
    whole = compile_model(tiny_llama, facts_of(tiny_llama, spec, context=64, shapes=SHAPES[2:]))
    # the processor computes before the same memory; what the simulation of the chip computes in is the host's
    needed = whole.weights_bytes + sum(whole.arenas[name] for name in ("kv", "dram", "cpu scratch"))
    compile_model(tiny_llama, facts_of(tiny_llama, with_memory(spec, needed), context=64, shapes=SHAPES[2:]))
    with pytest.raises(DoesNotFit, match=r"a context of (\d+) tokens fits") as error:
        compile_model(tiny_llama, facts_of(tiny_llama, with_memory(spec, needed - whole.arenas["kv"] // 4), context=64, shapes=SHAPES[2:]))
    said = int(str(error.value).split("a context of ")[1].split()[0])
    assert said == 48
    compile_model(tiny_llama, facts_of(tiny_llama, with_memory(spec, needed - whole.arenas["kv"] // 4), context=said, shapes=SHAPES[2:]))
    with pytest.raises(DoesNotFit, match="no context fits"):
        compile_model(tiny_llama, facts_of(tiny_llama, with_memory(spec, whole.weights_bytes), context=64, shapes=SHAPES[2:]))


def test_weights_that_are_more_than_the_memory_are_paged_from_a_storage_and_stalls_are_counted(tiny_llama: Model) -> None:
    large = random_network(tiny_llama, 1, ffn_size=4096)
    spec = load_preset("systolic-32")
    whole = compile_model(large, facts_of(large, spec, context=32, shapes=SHAPES[2:]))
    assert whole.weights_bytes > 2**20
    small = with_memory(spec, whole.weights_bytes)
    with pytest.raises(DoesNotFit, match="no context fits"):
        compile_model(large, facts_of(large, small, context=32, shapes=SHAPES[2:]))
    paged = compile_model(large, facts_of(large, small, context=32, shapes=SHAPES[2:], storage=Flash(1e9, 1e-4)))
    (program,), (before,) = paged.programs, whole.programs
    paging = program.paging
    assert paging is not None and before.paging is None
    assert sum(paging.stream.pages) + paging.stream.resident == weights_read_whole(whole)
    assert program.seconds == pytest.approx(before.seconds + paging.stalls / spec.clock_hz)
    (graph,) = describe(paged, None).graphs
    assert sum(op.stalls_seconds for op in graph.ops) == pytest.approx(graph.stalls_seconds)
    assert graph.stalls_seconds > 0 == sum(op.stalls_seconds for op in describe(whole, None).graphs[0].ops)
    timeline = schedule(page_tasks(paging, 1))
    work = sum(chunk.cycles for chunk in paging.stream.chunks)
    assert timeline.cycles - work == sum(paging.first_stalls) > 0
    with pytest.raises(DoesNotFit, match="two pages"):
        compile_model(large, facts_of(large, with_memory(spec, 2**20), context=32, shapes=SHAPES[2:], storage=Flash(1e9, 1e-4)))


def weights_read_whole(compiled: Compiled) -> int:
    """Bytes of all constants but the tables that rows are looked up in alone."""
    (program,) = compiled.programs
    read = {value.name for op in flat(program.graph.ops) for value in op.inputs if not op.kind.startswith("embed")}
    return sum(value.bytes for value in program.graph.constants if value.name in read)


def test_contexts_and_rows_that_do_not_exist_are_refused(tiny_llama: Model) -> None:
    spec = load_preset("systolic-32")
    with pytest.raises(CompileError, match="context of 513"):
        compile_model(tiny_llama, facts_of(tiny_llama, spec, context=513))
    with pytest.raises(CompileError, match="no program of 8 rows fits a context of 7"):
        compile_model(tiny_llama, facts_of(tiny_llama, spec, context=7, shapes=[Shape(8, 1)]))
    with pytest.raises(CompileError, match="scheme must be one of"):
        compile_model(tiny_llama, facts_of(tiny_llama, spec, context=8, scheme="w2a2"))  # type: ignore[arg-type]


def test_progress_names_every_stage_and_reaches_its_end(tiny_llama: Model) -> None:
    seen: list[tuple[str, int, int]] = []
    compile_model(
        tiny_llama, facts_of(tiny_llama, load_preset("systolic-32"), context=16, shapes=SHAPES), progress=lambda *step: seen.append(step)
    )
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert seen[-1][1] == seen[-1][2]
    assert any("weights" in what for what, _, _ in seen)


def test_no_speed_is_above_its_roof_where_the_processor_beside_the_chip_is_the_faster_one(tiny_llama: Model) -> None:
    spec = load_preset("systolic-32")
    array = dataclasses.replace(spec.array, rows=16, cols=16)
    dram = dataclasses.replace(spec.dram, bytes_per_cycle=65_536.0, latency_cycles=0)
    small = dataclasses.replace(spec, clock_hz=1e6, array=array, dram=dram)
    (graph,) = describe(compile_model(tiny_llama, facts_of(tiny_llama, small, context=16, shapes=SHAPES[:1])), None).graphs
    assert {segment.chip for segment in graph.segments} == {"cpu"}
    assert graph.tokens_per_s <= graph.roofline_tokens_per_s


def test_fusing_leaves_as_much_to_multiply_as_there_was(tiny_llama: Model) -> None:
    """Attention has two products in one operation."""
    (graph,) = describe(
        compile_model(tiny_llama, facts_of(tiny_llama, load_preset("systolic-32"), context=16, shapes=SHAPES[:1])), None
    ).graphs
    hidden, query, kv, inner, layers, rows = 64, 64, 32, 96, 2, 8
    a_layer = rows * (2 * hidden * query + 2 * hidden * kv + 3 * hidden * inner + 2 * query * 16)
    assert graph.macs == layers * a_layer + hidden * 320
    assert sum(op.macs for op in graph.ops) == graph.macs
