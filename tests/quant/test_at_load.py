"""Float weights become blocks at load: the right ones, once, and only when somebody reads them."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hybrid.cloud.engine.llm import LLM
from hybrid.edge.native import NativeRuntime
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.quant import panel_file
from hybrid.quant.at_load import QuantisedTensor, quantised
from hybrid.quant.formats import dequantize, quantize
from hybrid.quant.panel_file import panels_of
from hybrid.quant.repack import repack
from hybrid.shared_protocol.errors import ConfigError
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.executors import native, needs_native
from hybrid.tests.support.steps import relative_errors, run
from hybrid.tests.support.tiny_families import TINY, write_tiny
from numpy.typing import NDArray

IDS = [(i * 7919 + 11) % 320 for i in range(40)]
TABLE = [3, 1, 2]


@pytest.fixture(scope="module")
def floats(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return load_model(write_tiny(tmp_path_factory.mktemp("floats") / "floats.gguf", "llama", weights="BF16"))


class CountedTensor(Tensor):
    """A tensor that counts how often its data is read."""

    __slots__ = ("inner", "reads")

    def __init__(self, inner: Tensor) -> None:
        for field, value in (("name", inner.name), ("type_name", inner.type_name), ("shape", inner.shape), ("inner", inner), ("reads", 0)):
            object.__setattr__(self, field, value)

    @property
    def data(self) -> NDArray[np.uint8]:
        object.__setattr__(self, "reads", self.reads + 1)
        return self.inner.data


def random_matrix(rows: int, columns: int, type_name: str = "BF16", seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)
    return Tensor(f"m{seed}", type_name, (rows, columns), quantize(values, type_name))


@pytest.mark.parametrize("source", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("type_name", ["Q8_0", "Q4_1", "Q4_0"])
def test_a_matrix_made_in_pieces_is_the_matrix_packed_at_once(source: str, type_name: str) -> None:
    matrix = random_matrix(1_100, 256, source)  # more than one piece, and a last one that is shorter
    made = QuantisedTensor(matrix, type_name)
    assert (made.name, made.type_name, made.shape) == ("m0", type_name, (1_100, 256))
    np.testing.assert_array_equal(made.data, quantize(dequantize(matrix), type_name))


@pytest.mark.parametrize(("choice", "inner", "bits"), [("int8", "Q8_0", 8.5), ("int4", "Q4_1", 5.0), ("int4-symmetric", "Q4_0", 4.5)])
def test_matrices_become_blocks_the_embedding_keeps_eight_bits_and_vectors_stay(
    floats: Model, choice: str, inner: str, bits: float
) -> None:
    model = quantised(floats, choice)  # type: ignore[arg-type]
    types = {name: tensor.type_name for name, tensor in model.tensors.items()}
    assert types.pop("token_embd.weight") == "Q8_0"
    assert {name: kind for name, kind in types.items() if "norm" not in name} == dict.fromkeys(
        (name for name in types if "norm" not in name), inner
    )
    assert {kind for name, kind in types.items() if "norm" in name} == {"F32"}
    ends, norms = 320 * 64, 5 * 64
    inside = floats.card.num_parameters - ends - norms
    assert model.card.bits_per_weight == pytest.approx((8.5 * ends + 32 * norms + bits * inside) / floats.card.num_parameters, abs=1e-3)
    assert model.card.quantisation == inner
    assert model.card.file_hash == hashlib.sha256(f"{floats.card.file_hash} {choice}".encode()).hexdigest()
    assert (model.path, model.architecture, model.card.fingerprint) == (floats.path, floats.architecture, floats.card.fingerprint)


def test_a_gguf_file_is_never_requantised_unasked(floats: Model, tiny_llama: Model) -> None:
    assert quantised(floats) is floats
    assert quantised(tiny_llama) is tiny_llama
    assert quantised(floats, "none") is floats


def test_a_folder_is_served_in_int8_unless_told_otherwise(floats: Model, tmp_path: Path) -> None:
    folder = dataclasses.replace(floats, path=tmp_path)
    assert quantised(folder).card == quantised(floats, "int8").card
    assert quantised(folder, "none") is folder
    assert quantised(quantised(folder)).card == quantised(folder).card


@pytest.mark.parametrize("choice", ["int8", "int4"])
def test_weights_that_are_integers_already_are_refused(tiny_llama: Model, choice: str) -> None:
    with pytest.raises(ConfigError, match="tiny are Q4_1: quantise=int"):
        quantised(tiny_llama, choice)  # type: ignore[arg-type]


def test_a_choice_that_is_none_is_refused_with_those_that_are(floats: Model) -> None:
    with pytest.raises(ConfigError, match="int8, int4, int4-symmetric, none, found 'int2'"):
        quantised(floats, "int2")  # type: ignore[arg-type]


def test_rows_that_no_block_divides_stay_as_they_are_and_are_named(floats: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    odd = random_matrix(64, 100)
    with caplog.at_level(logging.INFO):
        model = quantised(dataclasses.replace(floats, path=tmp_path, tensors={**floats.tensors, odd.name: odd}))
    assert model.tensors[odd.name] is odd
    assert "15 of 16 matrices become Q8_0" in caplog.text
    assert "no block fits m0 (BF16, rows of 100)" in caplog.text
    assert quantised(model) is model


def test_the_log_says_the_true_bits_per_weight(floats: Model, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        quantised(floats, "int8")
    assert "15 of 15 matrices become Q8_0 at load, 8.59 bits per weight in all" in caplog.text


def test_nothing_is_computed_until_data_is_asked_for_and_panels_ask_once(
    floats: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panel_file, "SMALLEST", 0)
    monkeypatch.setattr(panel_file, "SPARE", 0)
    counted = {name: CountedTensor(tensor) for name, tensor in floats.tensors.items() if len(tensor.shape) == 2}
    model = quantised(dataclasses.replace(floats, tensors=counted), "int8")
    assert {tensor.reads for tensor in counted.values()} == {0}
    panels_of(model.tensors, model.card.file_hash, tmp_path / "m.panels")
    assert {tensor.reads for tensor in counted.values()} == {1}
    again = panels_of(model.tensors, model.card.file_hash, tmp_path / "m.panels")  # a second start
    assert {tensor.reads for tensor in counted.values()} == {1}
    for name, tensor in model.tensors.items():
        np.testing.assert_array_equal(again.arrays[name], repack(tensor))


def test_making_panels_takes_less_memory_than_the_floats_had() -> None:
    matrices = {f"m{seed}": random_matrix(1024, 1024, seed=seed) for seed in range(8)}
    file_bytes = sum(tensor.data.nbytes for tensor in matrices.values())
    tracemalloc.start()
    panels = panels_of({name: QuantisedTensor(tensor, "Q8_0") for name, tensor in matrices.items()}, "00" * 32, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert panels.nbytes == file_bytes // 2 * 34 // 32
    assert peak < 1.3 * file_bytes  # the panels themselves included


@pytest.mark.parametrize("name", TINY)
def test_int8_stays_near_the_float_model_in_every_family(name: str, tmp_path: Path) -> None:
    model = load_model(write_tiny(tmp_path / f"{name}.gguf", name, weights="BF16"))
    exact = run(ReferenceExecutor(model, num_blocks=4), IDS, TABLE)
    near = run(ReferenceExecutor(quantised(model, "int8"), num_blocks=4), IDS, TABLE)
    far = run(ReferenceExecutor(quantised(model, "int4"), num_blocks=4), IDS, TABLE)
    assert relative_errors(near, exact).mean() < 0.05
    assert relative_errors(near, exact).mean() < relative_errors(far, exact).mean() / 3


@needs_native
def test_the_kernels_compute_the_blocks_as_if_they_came_from_a_file(floats: Model) -> None:
    model = quantised(floats, "int8")
    stored = {name: Tensor(name, tensor.type_name, tensor.shape, tensor.data) for name, tensor in model.tensors.items()}
    with native(model) as made, native(dataclasses.replace(model, tensors=stored)) as read:
        np.testing.assert_array_equal(run(made, IDS, TABLE), run(read, IDS, TABLE))


def test_an_engine_and_a_device_take_the_choice_and_give_the_same_text(floats: Model) -> None:
    llm = LLM(floats, quantise="int8", max_model_len=64)
    runtime = NativeRuntime(floats, context=64, quantise="int8")
    assert llm.model.card == runtime.card == quantised(floats, "int8").card
    (answer,) = llm.generate([IDS[:8]], SamplingParams(temperature=0, max_tokens=4))
    ids = IDS[:8]
    for token in answer.token_ids:
        assert int(runtime.extend(ids)[-1].argmax()) == token
        ids = [token]
    assert LLM(floats, quantise="none", max_model_len=64).model is floats
