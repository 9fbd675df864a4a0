"""The compiled model on the simulated chip: the interpreter's words, the planned memory, and what the chip would have taken."""

from __future__ import annotations

import dataclasses
import gc
import tracemalloc
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hybrid.compiler.capture.sequence import SequenceRun
from hybrid.compiler.chips import chips_of
from hybrid.compiler.compile import compile_model, facts_of
from hybrid.compiler.program import Compiled, Shape
from hybrid.edge.npu.runtime import NpuRuntime
from hybrid.edge.open_runtime import open_runtime
from hybrid.npu_backends.base import Placement
from hybrid.npu_backends.preset import load_preset
from hybrid.shared_protocol.compile_errors import ArtifactRejected
from hybrid.shared_protocol.errors import Cancelled, ConfigError, ContextOverflow
from hybrid.shared_protocol.model import Model

CONTEXT, LONG = 48, 512
ALLOWED = 1 << 16  # bytes beside the plan: views as they are made, and the few kilobytes in which NumPy converts
PROMPT = [(i * 7919 + 11) % 320 for i in range(21)]
SLOW = dataclasses.replace(load_preset("host-cpu"), clock_hz=1e6)  # so that a tiny model is worth handing to a chip
PRESETS = ("systolic-32", "ethos-u85-2048")


@pytest.fixture(scope="module", params=PRESETS)
def compiled(request: pytest.FixtureRequest, tiny_llama: Model) -> Compiled:
    shapes = (Shape(16, 1), Shape(4, 4), Shape(1, 1))
    return compile_model(tiny_llama, facts_of(tiny_llama, load_preset(request.param), context=CONTEXT, shapes=shapes, host=SLOW))


def opened(model: Model, compiled: Compiled) -> NpuRuntime:
    return NpuRuntime(model.card, compiled, chips_of(compiled.facts.target, compiled.facts.host))


@pytest.fixture
def runtime(tiny_llama: Model, compiled: Compiled) -> Iterator[NpuRuntime]:
    runtime = opened(tiny_llama, compiled)
    yield runtime
    runtime.close()


def greedy(runtime: NpuRuntime, prompt: Sequence[int], count: int) -> list[int]:
    ids = [int(runtime.extend(prompt)[0].argmax())]
    while len(ids) < count:
        ids.append(int(runtime.extend(ids[-1:])[0].argmax()))
    return ids


def test_it_says_token_for_token_and_to_the_bit_what_the_interpreter_says(runtime: NpuRuntime, compiled: Compiled) -> None:
    step = compiled.programs[-1].graph
    run = SequenceRun(step, compiled.constants)
    logits = [run.feed(step, [token])["logits"][0] for token in PROMPT]
    np.testing.assert_array_equal(runtime.extend(PROMPT, rows=len(PROMPT)), np.array(logits))
    runtime.truncate(0)
    expected = [int(logits[-1].argmax())]
    while len(expected) < 12:
        expected.append(int(run.feed(step, expected[-1:])["logits"][0].argmax()))
    assert greedy(runtime, PROMPT, 12) == expected


def test_memory_is_what_was_planned_and_nothing_grows_while_it_runs(runtime: NpuRuntime, compiled: Compiled) -> None:
    memory, arenas = runtime.memory(), compiled.arenas
    assert memory.kv == arenas["kv"]
    assert memory.scratch == sum(arenas.values()) - arenas["kv"]
    assert memory.weights == sum(array.nbytes for array in compiled.constants.values())

    def go(rounds: int) -> None:
        for _ in range(rounds):
            runtime.truncate(0)
            runtime.extend(PROMPT, rows=3)
            greedy(runtime, [5], 2)

    go(1)
    gc.collect()
    tracemalloc.start()
    go(1)
    gc.collect()
    first, _ = tracemalloc.get_traced_memory()
    go(3)
    gc.collect()
    later, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert later - first < 2048  # bytes; one row of logits is 1,280
    assert (runtime.memory().kv, runtime.memory().scratch) == (memory.kv, memory.scratch)


def test_a_run_takes_next_to_nothing_beside_the_plan_with_attention_on_the_processor_too(tiny_llama: Model) -> None:
    chip = load_preset("ethos-u85-2048")  # whose array multiplies no floats
    long = compile_model(tiny_llama, facts_of(tiny_llama, chip, context=LONG, shapes=(Shape(32, 1), Shape(1, 1)), host=SLOW))
    runtime = opened(tiny_llama, long)
    assert runtime.memory().scratch == sum(size for name, size in long.arenas.items() if name != "kv")
    machine = runtime._machine
    assert machine is not None
    for runnable in machine.runnables:
        on_processor = [lowered.segment.graph for lowered in runnable.program.segments if lowered.segment.chip == "cpu"]
        kinds = {inner.kind for graph in on_processor for op in graph.ops for inner in (*op.body, op)}
        assert {"scores", "softmax", "mix"} <= kinds
        scores = max(value.bytes for graph in on_processor for op in graph.ops for inner in (*op.body, op) for value in inner.outputs)
        assert runnable.program.shape.rows == 1 or scores >= 4 * ALLOWED  # what would show
        runnable.ids[:], runnable.logit_index[:] = 0, 0
        runnable.position[0] = LONG - runnable.program.shape.rows
        runnable.run()  # kernels are bound to the scratch, and calls to their values
        gc.collect()
        tracemalloc.start()
        for _ in range(8):  # until Python's own lists of freed dictionaries are full
            runnable.run()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        runnable.run()
        after, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak - before < ALLOWED and after - before < 2048, (runnable.program.shape.name, peak - before, after - before)
    runtime.close()


def test_every_value_is_a_view_of_an_arena_as_long_as_the_runtime_lives(runtime: NpuRuntime) -> None:
    machine = runtime._machine
    assert machine is not None

    def places() -> list[int]:
        return [array.ctypes.data for runnable in machine.runnables for step in runnable.steps for array in step.buffers.values()]

    before = places()
    for runnable in machine.runnables:
        for step in runnable.steps:
            for name, array in step.buffers.items():
                assert any(np.shares_memory(array, arena) for arena in machine.arenas.values()), name
    runtime.extend(PROMPT)
    assert places() == before


def test_what_the_chip_would_take_is_counted_run_by_run(runtime: NpuRuntime, compiled: Compiled) -> None:
    assert (runtime.simulated().runs, runtime.simulated().seconds) == (0, 0.0)
    runtime.extend(PROMPT[:16])
    runtime.extend([1])
    chunk, _, step = compiled.programs
    spent = runtime.simulated()
    assert spent.runs == 2
    assert spent.chip == chunk.cost_on("systolic") + step.cost_on("systolic")
    assert spent.chip.cycles > 0
    assert spent.seconds == pytest.approx(chunk.seconds + step.seconds)
    assert runtime.tokens_per_second == pytest.approx(1 / step.seconds)


def test_the_cost_curve_is_the_cost_models_and_flat_up_to_the_rows_of_a_program(runtime: NpuRuntime, compiled: Compiled) -> None:
    _, verify, step = compiled.programs
    curve = runtime.cost_curve(6)
    assert curve[0] == 0
    assert curve[1] == pytest.approx(step.seconds * 1000)
    if verify.seconds < 2 * step.seconds:
        assert curve[2:5].tolist() == pytest.approx([verify.seconds * 1000] * 3)
    assert (np.diff(curve) >= 0).all()
    assert runtime.length == 0 and runtime.simulated().runs == 0  # nothing was run for it
    runtime.extend([1] * 44, rows=0)
    with pytest.raises(ContextOverflow):
        runtime.cost_curve(5)


def test_a_cancellation_between_chunks_holds_nothing(runtime: NpuRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = runtime.extend(PROMPT, rows=2)
    runtime.truncate(3)
    run = runtime._run
    monkeypatch.setattr(runtime, "_run", lambda turn, tokens: (runtime.cancel(), run(turn, tokens))[1])
    with pytest.raises(Cancelled):
        runtime.extend(PROMPT[3:], rows=2)
    assert runtime.length == 3
    monkeypatch.undo()
    np.testing.assert_array_equal(runtime.extend(PROMPT[3:], rows=2), expected)


def test_an_artifact_of_another_model_or_chip_or_with_scattered_states_is_refused(tiny_llama: Model, compiled: Compiled) -> None:
    with pytest.raises(ArtifactRejected, match="compile again"):
        opened(dataclasses.replace(tiny_llama, card=dataclasses.replace(tiny_llama.card, file_hash="0" * 64)), compiled)
    with pytest.raises(ArtifactRejected, match="is not here"):
        NpuRuntime(tiny_llama.card, compiled, {})
    last = compiled.programs[-1]
    moved = {**last.layout.placements, "keys.0": Placement("kv", 64, 8)}
    elsewhere = dataclasses.replace(last, layout=dataclasses.replace(last.layout, placements=moved))
    with pytest.raises(ArtifactRejected, match=r"keys\.0 stands elsewhere"):
        opened(tiny_llama, dataclasses.replace(compiled, programs=(*compiled.programs[:-1], elsewhere)))


def test_a_program_that_does_not_fit_itself_or_its_chip_is_refused(tiny_llama: Model, compiled: Compiled) -> None:
    first, *rest = compiled.programs
    there = first.layout.placements
    for name, place in (("embedding", Placement("dram", 1 << 40, 8)), ("ids", Placement("x", 0, 64)), ("ids", Placement("dram", -64, 64))):
        layout = dataclasses.replace(first.layout, placements={**there, name: place})
        with pytest.raises(ArtifactRejected, match=f"no place for {name}"):
            opened(tiny_llama, dataclasses.replace(compiled, programs=(dataclasses.replace(first, layout=layout), *rest)))
    with pytest.raises(ArtifactRejected, match="of other rows"):
        opened(tiny_llama, dataclasses.replace(compiled, programs=(dataclasses.replace(first, shape=Shape(16, 2)), *rest)))
    huge = {**first.layout.plans, "dram": dataclasses.replace(first.layout.plans["dram"], size=1 << 50)}
    layout = dataclasses.replace(first.layout, plans=huge)
    with pytest.raises(ArtifactRejected, match="its arenas are"):
        opened(tiny_llama, dataclasses.replace(compiled, programs=(dataclasses.replace(first, layout=layout), *rest)))


def test_it_is_opened_by_name_with_any_chip_and_a_target_is_for_it_alone(tiny_llama: Model) -> None:
    runtime = open_runtime(tiny_llama, "npu", context=16, target="systolic-32")
    assert "systolic-32" in runtime.kernel_id and runtime.context == 16
    assert runtime.extend([1, 2]).shape == (1, 320)
    runtime.close()
    with pytest.raises(ConfigError, match="has none"):
        open_runtime(tiny_llama, "native", target="systolic-32")
    with pytest.raises(ConfigError, match="no preset named 'ethos'"):
        open_runtime(tiny_llama, "npu", target="ethos")
