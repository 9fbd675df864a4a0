"""A captured network computes what the reference executor computes, to the bit, however its tokens are cut."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.capture.constants import constants_of
from hybrid.compiler.capture.sequence import SequenceRun
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.step import StepBatch
from hybrid.shared_protocol.compile_errors import CompileError, GraphInvalid
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.networks import FAMILIES, random_network, rotary

CONTEXT = 48
# what no family has: pairs that lie beside each other, fewer pairs than the head has, and longer contexts that turn otherwise
NETWORKS = {**FAMILIES, "interleaved": {"rotary": rotary(8, interleaved=True), "long_rotary": rotary(8, 5e5, True), "original_context": 32}}


def reference(model: Model, ids: list[int]) -> np.ndarray:
    """Logits of every token, [tokens, vocabulary]."""
    executor = ReferenceExecutor(model, num_blocks=CONTEXT // 16)
    rows = np.arange(len(ids), dtype=np.int32)
    batch = StepBatch(np.array(ids, np.int32), rows, np.array([0, len(ids)], np.int32), np.array([[0, 1, 2]], np.int32), rows)
    return executor.step(batch)


def graphs(model: Model, *rows: int) -> list[Graph]:
    return [capture(model.architecture, rows=r, logit_rows=r, context=CONTEXT, name=f"rows-{r}") for r in rows]


@pytest.mark.parametrize("family", NETWORKS)
def test_every_family_has_the_bits_of_the_reference_in_chunks_steps_and_padded_rows(tiny_llama: Model, family: str) -> None:
    model = random_network(tiny_llama, 3, **NETWORKS[family])
    ids = np.random.default_rng(5).integers(0, model.architecture.vocab_size, 35).tolist()
    expected = reference(model, ids)
    chunk, step = graphs(model, 8, 1)
    assert chunk.constants == step.constants
    run = SequenceRun(chunk, constants_of(model, chunk))
    found = [run.feed(chunk, ids[at : at + 8])["logits"] for at in (0, 8, 16)]
    found.append(run.feed(chunk, ids[24:29])["logits"][3:])  # three rows of padding; their places are written again by what follows
    found += [run.feed(step, [token])["logits"] for token in ids[29:32]]
    found.append(run.feed(chunk, ids[32:35])["logits"][5:])
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_a_real_model_has_the_bits_of_the_reference(smollm2: Model) -> None:
    arch = dataclasses.replace(smollm2.architecture, num_layers=4)
    model = dataclasses.replace(smollm2, architecture=arch)
    ids = smollm2.tokenizer.encode("Rain fell on the harbour.")
    chunk, step = graphs(model, 4, 1)
    run = SequenceRun(chunk, constants_of(model, chunk))
    found = [run.feed(chunk, ids[:4])["logits"], *(run.feed(step, [token])["logits"] for token in ids[4:])]
    np.testing.assert_array_equal(np.concatenate(found), reference(model, ids))


def test_a_graph_names_the_tensors_of_the_model_and_nothing_else(tiny_llama: Model) -> None:
    (step,) = graphs(tiny_llama, 1)
    names = {value.name for value in step.constants}
    assert names == {*tiny_llama.tensors, "rotary.cosines", "rotary.sines"}
    assert [value.name for value in step.inputs] == ["ids", "position", "logit_index", "keys.0", "values.0", "keys.1", "values.1"]
    assert step.outputs[0].name == "logits" and ("keys.1", "keys.1.after") in step.states


@pytest.mark.parametrize(("rows", "logit_rows", "context"), [(1, 1, 10**6), (8, 9, 16), (0, 0, 16), (17, 1, 16)])
def test_sizes_that_cannot_be_are_refused_with_those_asked_for(tiny_llama: Model, rows: int, logit_rows: int, context: int) -> None:
    with pytest.raises(CompileError, match=str(max(rows, context if context > 16 else rows))):
        capture(tiny_llama.architecture, rows=rows, logit_rows=logit_rows, context=context, name="g")


def test_constants_of_another_model_are_refused(tiny_llama: Model) -> None:
    graph = capture(random_network(tiny_llama, qkv_bias=True).architecture, rows=1, logit_rows=1, context=CONTEXT, name="g")
    with pytest.raises(GraphInvalid, match=r"blk.0.attn_q.bias"):
        constants_of(tiny_llama, graph)
    wide = capture(random_network(tiny_llama, ffn_size=128).architecture, rows=1, logit_rows=1, context=CONTEXT, name="g")
    with pytest.raises(GraphInvalid, match=r"blk.0.ffn_gate.weight"):
        constants_of(tiny_llama, wide)


def test_a_run_beyond_the_cache_is_refused_padding_included(tiny_llama: Model) -> None:
    (chunk,) = graphs(tiny_llama, 32)
    run = SequenceRun(chunk, constants_of(tiny_llama, chunk))
    run.feed(chunk, [1] * 20)
    with pytest.raises(CompileError, match="1 tokens after 20"):
        run.feed(chunk, [1])
