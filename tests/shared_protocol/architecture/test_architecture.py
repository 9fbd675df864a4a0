"""Which networks are understood, and how the others are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid.quant.formats import FORMATS
from hybrid.shared_protocol.architecture import Architecture, Rotary
from hybrid.shared_protocol.architecture.gguf_architecture import architecture_of
from hybrid.shared_protocol.architecture.tensor_shapes import WEIGHT_TYPES
from hybrid.shared_protocol.errors import ModelFileError
from hybrid.shared_protocol.gguf import read_gguf
from hybrid.shared_protocol.model import Model, load_model
from hybrid.tests.support.gguf_writer import TensorSpec, tiny_metadata, tiny_tensors, write_gguf, write_tiny_llama


def test_the_tiny_llama_is_read_as_it_was_written(tiny_llama: Model) -> None:
    assert tiny_llama.architecture == Architecture(
        family="llama",
        num_layers=2,
        hidden_size=64,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        ffn_size=96,
        vocab_size=320,
        context_length=512,
        norm_eps=pytest.approx(1e-5),
        rotary=Rotary(pytest.approx(tuple(10_000.0 ** (-i / 16) for i in range(0, 16, 2))), interleaved=True),
        attention_scale=0.25,
        tied_embeddings=True,
    )


def test_an_output_matrix_of_its_own_is_seen(tmp_path: Path) -> None:
    tensors = {**tiny_tensors(), "output.weight": tiny_tensors(1)["token_embd.weight"]}
    assert not architecture_of(read_gguf(write_gguf(tmp_path / "u.gguf", tiny_metadata(), tensors))).tied_embeddings


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"general__architecture": "mamba"}, "'mamba'.*llama"),
        ({"general__architecture": None}, "general.architecture"),
        ({"general__architecture": 7}, "general.architecture"),
        ({"llama__block_count": None}, "llama.block_count"),
        ({"llama__block_count": 0}, "llama.block_count"),
        ({"llama__block_count": 1 << 30}, "llama.block_count"),
        ({"llama__block_count": 2.0}, "llama.block_count"),
        ({"llama__block_count": True}, "llama.block_count"),
        ({"llama__attention__head_count": 0}, "head_count"),
        ({"llama__attention__head_count": 5}, "5 heads"),
        ({"llama__attention__head_count_kv": 3}, "head_count_kv"),
        ({"llama__attention__head_count_kv": 0}, "head_count_kv"),
        ({"llama__attention__head_count_kv": [2, 2]}, "head_count_kv"),
        ({"llama__attention__key_length": 15}, "15"),
        ({"llama__attention__value_length": 32}, "value_length"),
        ({"llama__rope__dimension_count": 8}, "rope.dimension_count"),
        ({"llama__rope__scaling__type": "linear"}, "rope.scaling.factor.*missing"),
        ({"llama__rope__scaling__type": "abf"}, "rope.scaling.type.*'abf'"),
        ({"llama__rope__freq_base": float("nan")}, "freq_base"),
        ({"llama__attention__layer_norm_rms_epsilon": None}, "epsilon"),
        ({"llama__attention__layer_norm_rms_epsilon": -1.0}, "epsilon"),
        ({"llama__context_length": 0}, "context_length"),
        ({"llama__vocab_size": 300}, "vocab_size"),
        ({"llama__expert_count": 8}, "expert_count"),
        ({"llama__feed_forward_length": 128}, "ffn_gate.*shape"),
        ({"llama__block_count": 3}, "blk.2.attn_norm.weight.*missing"),
        ({"llama__block_count": 1}, "blk.1.*not part"),
        ({"tokenizer__chat_template": ["a"]}, "chat_template"),
    ],
)
def test_missing_or_absurd_metadata_is_refused_by_name(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", tiny_metadata(**change), tiny_tensors())
    with pytest.raises(ModelFileError, match=named):
        load_model(path)


F16_NORM: TensorSpec = ("F16", (64,), bytes(128))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"token_embd.weight": None}, "token_embd.weight"),
        ({"token_embd.weight": ("F32", (64,), bytes(256))}, "token_embd.weight"),
        ({"output_norm.weight": None}, "output_norm.weight"),
        ({"output_norm.weight": F16_NORM}, "F16; supported here: F32"),
        ({"blk.1.ffn_up.weight": ("Q6_K", (96, 64), None)}, "multiples of 256"),
        ({"blk.1.ffn_up.weight": ("Q8_1", (96, 64), bytes(96 * 72))}, "Q8_1; supported here: Q4_0, Q4_1, .*, IQ4_XS, F16, BF16, F32"),
        ({"blk.0.attn_q.bias": ("F32", (64,), bytes(256))}, "attn_q.bias"),
        ({"rope_freqs.weight": ("F32", (8,), bytes(32))}, "rope_freqs.weight"),
    ],
)
def test_missing_strange_or_unsupported_tensors_are_refused_by_name(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    tensors: dict[str, Any] = {**tiny_tensors(), **{name: spec and (*spec[:2], spec[2] or b"") for name, spec in change.items()}}
    path = write_gguf(tmp_path / "m.gguf", tiny_metadata(), {name: spec for name, spec in tensors.items() if spec})
    with pytest.raises(ModelFileError, match=named):
        load_model(path)


def test_a_vocabulary_that_does_not_fit_the_embedding_is_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", tiny_metadata(320, llama__vocab_size=None), tiny_tensors(vocab_size=300))
    with pytest.raises(ModelFileError, match=r"300 rows.*320 entries"):
        load_model(path)


def test_every_supported_weight_type_has_a_format(tmp_path: Path) -> None:
    assert set(WEIGHT_TYPES) == set(FORMATS)
    for name in [name for name in WEIGHT_TYPES if FORMATS[name].block < 256]:  # the tiny model has rows of 64 and 96
        assert load_model(write_tiny_llama(tmp_path / f"{name}.gguf", weights=name)).tensors["blk.0.attn_q.weight"].type_name == name


def test_the_card_says_what_the_file_says(tiny_llama: Model, tmp_path: Path) -> None:
    card = tiny_llama.card
    layer = 2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64
    assert card.num_parameters == 320 * 64 + 64 + 2 * layer
    bits = 5 * 2 * (layer - 2 * 64) + 8.5 * 320 * 64 + 32 * (64 + 2 * 2 * 64)  # Q4_1, the embedding in Q8_0, norms in F32
    assert card.bits_per_weight == pytest.approx(bits / card.num_parameters, abs=1e-3)
    assert (card.name, card.architecture, card.quantisation, card.licence) == ("tiny", "llama", "Q4_1", "Apache-2.0")
    assert (card.context_length, card.vocab_size, card.file_bytes) == (512, 320, tiny_llama.path.stat().st_size)
    unknown = load_model(write_tiny_llama(tmp_path / "u.gguf", general__license=None))
    assert unknown.card.licence == "unknown"
    assert np.asarray(unknown.tensors["output_norm.weight"].data).size == 256
