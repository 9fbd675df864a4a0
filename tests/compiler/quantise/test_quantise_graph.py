"""A quantised graph rounds rows once for all who read them, shares its tables, and gives a row the same bits however tokens are cut."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.capture.constants import constants_of
from hybrid.compiler.capture.sequence import SequenceRun
from hybrid.compiler.quantise.calibrate import observe, static_scales
from hybrid.compiler.quantise.constants import quantised_constants
from hybrid.compiler.quantise.layout import CHANNEL, GROUP4, GROUP8, Scheme, layouts_of, matrices
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.op import fused
from hybrid.shared_protocol.compile_errors import CompileError
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.networks import FAMILIES, random_network
from hypothesis import given, settings
from hypothesis import strategies as st

CONTEXT, TOKENS = 32, 20
IDS = np.random.default_rng(2).integers(0, 320, TOKENS).tolist()


def captured(model: Model, rows: int) -> Graph:
    return capture(model.architecture, rows=rows, logit_rows=rows, context=CONTEXT, name=f"rows-{rows}")


def test_rows_are_rounded_once_for_all_products_that_read_them(tiny_llama: Model) -> None:
    graph = quantise_graph(captured(tiny_llama, 1), "w8a8")
    kinds = Counter(op.kind for op in graph.ops)
    # a layer: 7 products of 4 kinds of rows (q, k, v share one, gate and up another), 2 layers, and the head
    assert (kinds["linear_i8"], kinds["quantise"], kinds["linear"], kinds["embed_i8"]) == (15, 9, 0, 1)
    readers = {op.name: [value.name for value in op.inputs] for op in graph.ops if op.kind == "linear_i8"}
    assert readers["blk.1.attn_q"][:2] == readers["blk.1.attn_v"][:2] == ["blk.1.attn_norm.codes", "blk.1.attn_norm.scales"]
    assert readers["logits"][2:] == ["token_embd.weight.codes", "token_embd.weight.scales"]
    assert "token_embd.weight" not in {value.name for value in graph.constants}


def test_chunk_and_step_share_their_constants_in_every_scheme(tiny_llama: Model) -> None:
    for scheme in ("w8a8", "w4a8"):
        chunk, step = (quantise_graph(captured(tiny_llama, rows), scheme) for rows in (8, 1))
        assert chunk.constants == step.constants


def test_a_layout_is_chosen_by_scheme_file_and_target(tiny_llama: Model) -> None:
    model = random_network(tiny_llama, weights="F16", ffn_size=112, tied_embeddings=False, qkv_bias=True)  # 112 is no multiple of a group
    graph = captured(model, 1)
    assert set(layouts_of(graph, "w8a8", model).values()) == {CHANNEL}
    layouts = layouts_of(graph, "w4a8", model)
    assert layouts["output.weight"] == layouts["token_embd.weight"] == GROUP8
    assert (layouts["blk.0.attn_q.weight"], layouts["blk.0.ffn_up.weight"], layouts["blk.0.ffn_down.weight"]) == (GROUP4, GROUP4, CHANNEL)
    assert layouts_of(graph, "w4a8", model, ["int4_group32", "int8_channel"])["output.weight"] == CHANNEL
    assert "blk.0.attn_q.bias" not in layouts and "blk.0.attn_norm.weight" not in layouts
    finer = random_network(tiny_llama, weights="Q5_0")
    assert layouts_of(captured(finer, 1), "w4a8", finer)["blk.0.attn_q.weight"] == GROUP8
    assert layouts_of(captured(finer, 1), "w4a8")["blk.0.attn_q.weight"] == GROUP4  # rounded anew
    with pytest.raises(CompileError, match="int4_group32; the target reads int8_channel"):
        layouts_of(graph, "w4a8", model, ["int8_channel"])
    with pytest.raises(CompileError, match="'w2a2'"):
        layouts_of(graph, "w2a2", model)  # type: ignore[arg-type]


def test_a_constant_that_is_also_added_stays_float(tiny_llama: Model) -> None:
    graph = captured(tiny_llama, 1)
    assert {value.name for value in matrices(graph)} == {name for name, tensor in tiny_llama.tensors.items() if len(tensor.shape) == 2}


def test_a_graph_is_quantised_before_it_is_fused(tiny_llama: Model) -> None:
    graph = captured(tiny_llama, 1)
    joined = Graph("joined", graph.inputs, graph.constants, (fused(graph.ops, graph.outputs),), graph.outputs, graph.states)
    with pytest.raises(CompileError, match="was fused before"):
        quantise_graph(joined, "w8a8")


SCHEMES: tuple[tuple[Scheme, bool, str], ...] = (
    ("w8a8", False, "gemma3"),
    ("w8a8", True, "qwen2"),
    ("w4a8", False, "phi3"),
    ("w4a8", True, "llama"),
)


@pytest.fixture(scope="module", params=SCHEMES, ids=lambda one: f"{one[0]}-{'static' if one[1] else 'per-row'}-{one[2]}")
def quantised(request: pytest.FixtureRequest, tiny_llama: Model) -> tuple[Graph, Graph, dict[str, np.ndarray], np.ndarray]:
    """Chunk, step, constants, and the logits token by token."""
    scheme, static, family = request.param
    model = random_network(tiny_llama, 4, **FAMILIES[family])
    step = captured(model, 1)
    scales = static_scales(observe(step, constants_of(model, step), [IDS[:6]])) if static else None
    layouts = layouts_of(step, scheme, model)
    chunk, step = (quantise_graph(captured(model, rows), scheme, layouts=layouts, static=scales) for rows in (6, 1))
    constants = quantised_constants(model, step)
    run = SequenceRun(step, constants)
    return chunk, step, constants, np.concatenate([run.feed(step, [token])["logits"] for token in IDS])


@settings(max_examples=6)
@given(cuts=st.lists(st.integers(1, 6), min_size=TOKENS, max_size=TOKENS))
def test_any_cut_into_chunks_gives_the_bits_of_token_by_token(
    quantised: tuple[Graph, Graph, dict[str, np.ndarray], np.ndarray], cuts: list[int]
) -> None:
    chunk, step, constants, expected = quantised
    run = SequenceRun(chunk, constants)
    while run.length < TOKENS:
        part = IDS[run.length : run.length + cuts[run.length]]
        logits = run.feed(chunk, part)["logits"][6 - len(part) :] if len(part) > 1 else run.feed(step, part)["logits"]
        np.testing.assert_array_equal(logits, expected[run.length - len(part) : run.length])


def test_static_scales_are_the_largest_magnitudes_that_were_seen(tiny_llama: Model) -> None:
    step = captured(tiny_llama, 1)
    constants = constants_of(tiny_llama, step)
    scales = static_scales(observe(step, constants, [IDS[:3], IDS[3:5]]))
    peaks = [np.abs(constants["token_embd.weight"][token]) for token in IDS[:5]]
    normed = [row / np.sqrt(np.mean(row**2) + tiny_llama.architecture.norm_eps) * constants["blk.0.attn_norm.weight"] for row in peaks]
    assert scales["blk.0.attn_norm"] == pytest.approx(np.abs(normed).max() / 127, rel=1e-5)
    graph = quantise_graph(step, "w8a8", static=scales)
    assert next(op for op in graph.ops if op.kind == "quantise").attributes == (("scale", scales["blk.0.attn_norm"]),)
    with pytest.raises(CompileError, match=r"no static scale for blk\.0\.attn_norm"):
        quantise_graph(step, "w8a8", static={})
    with pytest.raises(CompileError, match="logits for one row a run"):
        observe(captured(tiny_llama, 2), constants, [IDS])
    with pytest.raises(CompileError, match="takes tokens"):
        observe(step, constants, [[]])


def test_a_matrix_of_less_than_a_group_of_inputs_has_constants(tiny_llama: Model) -> None:
    model = random_network(tiny_llama, weights="F32", ffn_size=31)
    graph = quantise_graph(captured(model, 1), "w4a8", layouts=layouts_of(captured(model, 1), "w4a8", model))
    constants = quantised_constants(model, graph)
    assert {value.name: value.shape for value in graph.constants} == {name: array.shape for name, array in constants.items()}
