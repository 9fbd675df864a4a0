"""A model compiled with its large columns moved to the weights: nearer to its source, told from one that is not, the same on the chip."""

from __future__ import annotations

import dataclasses
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hybrid.compiler.cache import compiled_for
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.capture.constants import constants_of
from hybrid.compiler.capture.sequence import SequenceRun
from hybrid.compiler.chips import chips_of
from hybrid.compiler.compile import compile_model, facts_of
from hybrid.compiler.fidelity import fidelity
from hybrid.compiler.program import Shape
from hybrid.compiler.quantise.calibrate import observe
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.compiler.smoothing import LARGEST_TEXT, own_text, read_text
from hybrid.edge.npu.runtime import NpuRuntime
from hybrid.npu_backends.preset import load_preset
from hybrid.quant.formats import dequantize
from hybrid.shared_protocol.compile_errors import CompileError
from hybrid.shared_protocol.errors import ConfigError
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.networks import random_network

TARGET = load_preset("systolic-32")
SHAPES = (Shape(4, 1), Shape(1, 1))
IDS = np.random.default_rng(4).integers(0, 320, 11).tolist()


@pytest.fixture(scope="module")
def uneven(tiny_llama: Model) -> Model:
    """A network with two columns as large as trained ones have, whose weights there are small."""
    model = random_network(tiny_llama, 5)
    factors = np.ones(64, np.float32)
    factors[[3, 40]] = 60
    tensors = dict(model.tensors)
    for name, factor in (("ffn_norm", factors), ("ffn_gate", 1 / factors), ("ffn_up", 1 / factors)):
        source = tensors[f"blk.0.{name}.weight"]
        values = np.ascontiguousarray(dequantize(source) * factor)
        tensors[source.name] = Tensor(source.name, "F32", source.shape, values.reshape(-1).view(np.uint8))
    return dataclasses.replace(model, tensors=tensors)


def test_a_smoothed_model_is_nearer_to_its_source_and_the_chip_has_the_interpreters_bits(uneven: Model) -> None:
    plain, smooth = (
        compile_model(uneven, facts_of(uneven, TARGET, context=32, shapes=SHAPES, smooth=text), smooth=text) for text in (None, own_text())
    )
    strays, less = (fidelity(uneven, one.facts, one.constants) for one in (plain, smooth))
    assert less.kl_mean < 0.7 * strays.kl_mean
    step = quantise_graph(capture(uneven.architecture, rows=1, logit_rows=1, context=32, name="step"), "w8a8")
    run = SequenceRun(step, smooth.constants)
    expected = [run.feed(step, [token])["logits"][0] for token in IDS]
    with closing(NpuRuntime(uneven.card, smooth, chips_of(smooth.facts.target, smooth.facts.host))) as runtime:
        np.testing.assert_array_equal(runtime.extend(IDS, rows=len(IDS)), expected)
        assert "w8a8-smooth-" in runtime.kernel_id
    with closing(NpuRuntime(uneven.card, plain, chips_of(plain.facts.target, plain.facts.host))) as runtime:
        assert not np.array_equal(runtime.extend(IDS[-1:])[0], expected[-1]) and "smooth" not in runtime.kernel_id


def test_what_was_smoothed_by_another_text_or_not_at_all_is_another_artifact(tiny_llama: Model, tmp_path: Path) -> None:
    texts = (None, own_text(), "Rain is forecast for the hills, and sun for the coast.")
    for _ in range(2):
        found = [
            compiled_for(
                tiny_llama,
                facts_of(tiny_llama, TARGET, context=32, shapes=[Shape(1, 1)], smooth=text),
                smooth=text,
                root=tmp_path,
                always_keep=True,
            )
            for text in texts
        ]
    assert all(one.cached for one in found) and len({one.sha256 for one in found}) == len({one.folder for one in found}) == 3
    moved = [one.compiled.facts.smoothing for one in found]
    assert [one and one.own_text for one in moved] == [None, False, True]


def test_peaks_are_the_same_in_runs_of_any_number_of_rows(uneven: Model) -> None:
    step, chunk = (capture(uneven.architecture, rows=rows, logit_rows=1, context=16, name="g") for rows in (1, 4))
    constants = constants_of(uneven, step)
    one, four = (observe(graph, constants, [IDS[:9], IDS[9:]]) for graph in (step, chunk))
    layers = [name for name in one if name.startswith("blk.")]
    assert len(layers) == 4 * uneven.architecture.num_layers
    for name in layers:
        np.testing.assert_array_equal(four[name], one[name])


def test_smoothing_is_refused_where_blocks_are_carried_over_and_without_tokens(tiny_llama: Model) -> None:
    with pytest.raises(CompileError, match="smoothing is for w8a8"):
        facts_of(tiny_llama, TARGET, scheme="w4a8", context=32, smooth=own_text())
    with pytest.raises(CompileError, match="no tokens"):
        facts_of(tiny_llama, TARGET, scheme="w8a8", context=32, smooth="")


@pytest.mark.parametrize(
    ("content", "told"),
    [(b" \n", "empty"), (b"\xff\xfe", "not UTF-8"), (b"a" * (LARGEST_TEXT + 1), "larger than"), (None, "No such file")],
    ids=["empty", "bytes", "large", "gone"],
)
def test_a_file_that_is_no_text_is_refused_by_its_name(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "mine.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"mine\.txt: .*{told}"):
        read_text(path)
