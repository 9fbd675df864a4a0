"""Moving sizes from rows to weights changes no answer, and brings rounded products nearer to the source."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.capture.constants import constants_of
from hybrid.compiler.capture.sequence import SequenceRun
from hybrid.compiler.quantise.calibrate import observe, static_scales
from hybrid.compiler.quantise.constants import quantised_constants
from hybrid.compiler.quantise.gate import measure
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.compiler.quantise.smooth import smoothed
from hybrid.npu_backends.ir.graph import Graph
from hybrid.quant.formats import dequantize
from hybrid.shared_protocol.compile_errors import CompileError
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.networks import FAMILIES, random_network

IDS = np.random.default_rng(9).integers(0, 320, 18).tolist()


def captured(model: Model, rows: int = 1) -> Graph:
    return capture(model.architecture, rows=rows, logit_rows=rows, context=32, name="g")


@pytest.mark.parametrize("family", ["qwen2", "gemma2", "phi3"])
def test_a_smoothed_model_computes_the_same(tiny_llama: Model, family: str) -> None:
    model = random_network(tiny_llama, 5, **FAMILIES[family])
    graph = captured(model)
    smooth, peaks = smoothed(model, observe(graph, constants_of(model, graph), [IDS[:9]]))
    before, after = SequenceRun(graph, constants_of(model, graph)), SequenceRun(graph, constants_of(smooth, graph))
    for token in IDS[:9]:
        # keys and values are rounded to f16 at other sizes, which is more than float32's own rounding
        expected = before.feed(graph, [token])["logits"]
        np.testing.assert_allclose(after.feed(graph, [token])["logits"], expected, atol=4e-3 * np.abs(expected).max())
    again = observe(graph, constants_of(smooth, graph), [IDS[:9]])
    for name, peak in peaks.items():
        np.testing.assert_allclose(again[name], peak, rtol=0.02, atol=0.01 * peak.max())


def test_rows_with_a_few_large_columns_are_rounded_better_after_it(tiny_llama: Model) -> None:
    model = random_network(tiny_llama, 5)
    factors = np.ones(64, np.float32)
    factors[[3, 40]] = 60  # as large as in a trained network, whose weights there are small
    tensors = dict(model.tensors)
    for name, factor in (("ffn_norm", factors), ("ffn_gate", 1 / factors), ("ffn_up", 1 / factors)):
        source = tensors[f"blk.0.{name}.weight"]
        values = np.ascontiguousarray(dequantize(source) * factor)
        tensors[source.name] = Tensor(source.name, "F32", source.shape, values.reshape(-1).view(np.uint8))
    model = dataclasses.replace(model, tensors=tensors)
    graph, chunk = captured(model), captured(model, 6)
    peaks = observe(graph, constants_of(model, graph), [IDS[:6]])
    smooth, left = smoothed(model, peaks)
    source = (chunk, constants_of(model, chunk))
    for before, after in ((None, None), (static_scales(peaks), static_scales(left))):
        plain, better = (quantise_graph(chunk, "w8a8", static=scales) for scales in (before, after))
        strays = measure(source, (plain, quantised_constants(model, plain)), [IDS[6:]])
        less = measure(source, (better, quantised_constants(smooth, better)), [IDS[6:]])
        assert less.kl_mean < 0.6 * strays.kl_mean


def test_peaks_of_another_model_and_foreign_strengths_are_refused(tiny_llama: Model) -> None:
    wide = random_network(tiny_llama, ffn_size=128)
    peaks = observe(captured(wide), constants_of(wide, captured(wide)), [IDS[:1]])
    with pytest.raises(CompileError, match=r"no peaks for blk\.0\.ffn_gated"):
        smoothed(tiny_llama, peaks)
    with pytest.raises(CompileError, match=r"found 1\.5"):
        smoothed(wide, peaks, 1.5)
