"""Blocks are carried over to the bit where a layout holds them; the rest is rounded to the nearest, and the error is told."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.quantise.codes import codes_of
from hybrid.compiler.quantise.constants import carried_of, quantised_constants
from hybrid.compiler.quantise.layout import CHANNEL, EXACT, GROUP4, GROUP8, Layout, layouts_of
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.semantics import SEMANTICS
from hybrid.quant.formats import dequantize, quantize
from hybrid.shared_protocol.compile_errors import CompileError, GraphInvalid
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.networks import random_network


def tensor(type_name: str, shape: tuple[int, int] = (5, 256), seed: int = 1) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor("w", type_name, shape, quantize(values, type_name))


def step_of(model: Model) -> Graph:
    return capture(model.architecture, rows=1, logit_rows=1, context=16, name="step")


@pytest.mark.parametrize("type_name", EXACT)
def test_blocks_that_a_layout_holds_are_carried_over_to_the_bit(type_name: str) -> None:
    source = tensor(type_name)
    found = codes_of(source, EXACT[type_name])
    np.testing.assert_array_equal(found.values(), dequantize(source))
    assert found.codes.dtype == (np.uint8 if EXACT[type_name] == GROUP4 else np.int8)
    assert found.codes.min() >= 0 and found.codes.max() <= 15 if EXACT[type_name] == GROUP4 else True
    assert (found.offsets is not None) == EXACT[type_name].offsets


def test_codes_are_looked_up_as_the_values_that_they_stand_for() -> None:
    source = tensor("Q4_1")
    found = codes_of(source, GROUP4)
    (rows,) = SEMANTICS["embed_g32"](None, found.codes, found.scales, found.offsets, np.array([4, 0]))
    np.testing.assert_array_equal(rows, dequantize(source)[[4, 0]])


def test_channels_are_rounded_to_127_steps_with_halves_to_even() -> None:
    values = np.array([[127, 0.5, 1.5, -2.5, 1.6, *[0] * 27], [-254, 127, 3, 5, 0, *[0] * 27], [0] * 32], np.float32)
    found = codes_of(Tensor("w", "F32", values.shape, values.reshape(-1).view(np.uint8)), CHANNEL)
    assert found.codes[:, :5].tolist() == [[127, 0, 2, -2, 2], [-127, 64, 2, 2, 0], [0, 0, 0, 0, 0]]
    assert found.scales.tolist() == [1, 2, 0] and found.offsets is None


def test_groups_are_rounded_between_their_lowest_and_highest_value() -> None:
    values = np.array([[*range(16), *[15] * 16, *[-3] * 32]], np.float32)
    found = codes_of(Tensor("w", "F32", values.shape, values.reshape(-1).view(np.uint8)), GROUP4)
    assert found.codes[0, :17].tolist() == [*range(16), 15] and not found.codes[0, 32:].any()
    assert found.scales.tolist() == [[1, 0]] and found.offsets is not None and found.offsets.tolist() == [[0, -3]]


@pytest.mark.parametrize(("layout", "steps"), [(CHANNEL, 127), (GROUP8, 127), (GROUP4, 7.5)])
def test_no_weight_moves_by_more_than_half_a_step(layout: Layout, steps: float) -> None:
    source = tensor("F16", (40, 96))
    values = dequantize(source)
    each = values.reshape(40, -1, 32) if layout.grouped else values.reshape(40, 1, -1)
    half = (each.max(axis=2) - each.min(axis=2)) / 30 if layout.offsets else np.abs(each).max(axis=2) / steps / 2
    moved = np.abs(codes_of(source, layout).values().reshape(each.shape) - each).max(axis=2)
    assert (moved <= half * 1.0001).all() and (moved > half * 0.5).any()


@pytest.mark.parametrize("bad", [np.inf, np.nan, 3e38])
@pytest.mark.parametrize("layout", [CHANNEL, GROUP4])
def test_weights_that_no_integer_stands_for_are_refused(layout: Layout, bad: float) -> None:
    values = np.zeros((1, 32), np.float32)
    values[0, 3:5] = bad, -bad
    source = Tensor("w", "F32", values.shape, values.reshape(-1).view(np.uint8))
    if bad == 3e38 and layout == CHANNEL:
        assert codes_of(source, layout).codes[0, 3] == 127
        return
    with pytest.raises(CompileError, match="not finite"):
        codes_of(source, layout)
    blocks = np.frombuffer(np.array([np.inf, 1], np.float16).tobytes() + bytes(16), np.uint8)
    with pytest.raises(CompileError, match="not finite"):
        codes_of(Tensor("w", "Q4_1", (1, 32), blocks), GROUP4)


def test_every_matrix_is_said_to_be_lossless_or_rounded_with_its_error(tiny_llama: Model) -> None:
    mixed = random_network(tiny_llama, 1, weights="Q4_0")
    floats = random_network(tiny_llama, 1, weights="F16").tensors
    model = dataclasses.replace(mixed, tensors={**mixed.tensors, "blk.1.ffn_up.weight": floats["blk.1.ffn_up.weight"]})
    step = step_of(model)
    graph = quantise_graph(step, "w4a8", layouts=layouts_of(step, "w4a8", model))
    notes = {note.name: note for note in carried_of(model, graph, quantised_constants(model, graph))}
    assert len(notes) == 15 and notes["blk.0.attn_q.weight"].lossless and notes["blk.0.attn_q.weight"].error == 0
    table, rounded = notes["token_embd.weight"], notes["blk.1.ffn_up.weight"]
    assert (table.source, table.format, table.lossless) == ("Q8_0", "int8_group32", True)
    # 15 steps over the range of 32 normal numbers, about 4 deviations: 4 / 15 / sqrt(12) of one
    assert (rounded.source, rounded.format, rounded.lossless) == ("F16", "int4_group32", False) and 0.06 < rounded.error < 0.1
    channels = quantise_graph(step, "w8a8")
    notes = {note.name: note for note in carried_of(model, channels, quantised_constants(model, channels))}
    assert not any(note.lossless for note in notes.values()) and all(0 < note.error < 0.02 for note in notes.values())


def test_constants_of_another_model_are_refused(tiny_llama: Model) -> None:
    graph = quantise_graph(step_of(random_network(tiny_llama, ffn_size=128)), "w8a8")
    with pytest.raises(GraphInvalid, match=r"blk\.0\.ffn_gate\.weight\.codes"):
        quantised_constants(tiny_llama, graph)
