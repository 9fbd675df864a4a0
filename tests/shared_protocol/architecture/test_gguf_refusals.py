"""Files that lack, twist or contradict what their family needs are refused by the key or tensor at fault."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hybrid.shared_protocol.architecture import Architecture
from hybrid.shared_protocol.architecture.gguf_architecture import FAMILIES, architecture_of
from hybrid.shared_protocol.errors import ModelFileError
from hybrid.shared_protocol.gguf import GgufFile, Tensor, read_gguf
from hybrid.shared_protocol.model import load_model
from hybrid.tests.support.gguf_writer import TensorSpec, write_gguf
from hybrid.tests.support.tiny_families import TINY, tiny_family_metadata, tiny_family_tensors, write_tiny
from hypothesis import given, settings
from hypothesis import strategies as st

TENSORS = {name: tiny_family_tensors(name) for name in TINY}
SCALING = {
    f"{family}.rope.scaling.{key}": None
    for family in FAMILIES
    for key in ("type", "factor", "original_context_length", "attn_factor", "yarn_beta_fast", "yarn_beta_slow")
}
HOSTILE = [0, -1 & 0xFFFFFFFF, 1 << 31, 2.0, True, "8", [1, 2]]


def read(tmp_path: Path, name: str, **changes: object) -> Architecture:
    return architecture_of(read_gguf(write_tiny(tmp_path / "m.gguf", name, **changes)))


REQUIRED = ("block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count")


@pytest.mark.parametrize("key", REQUIRED)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_size_that_is_missing_or_no_size_is_refused_by_name(tmp_path: Path, family: str, key: str) -> None:
    tensors = tiny_family_tensors(family)
    for value in [None, *HOSTILE]:
        changes = {f"__{key.replace('.', '__')}": value}
        path = write_gguf(tmp_path / "m.gguf", tiny_family_metadata(family, **changes), tensors)
        with pytest.raises(ModelFileError, match=f"the key '{family}.{key}'"):
            architecture_of(read_gguf(path))


@pytest.mark.parametrize(
    ("name", "key", "values"),
    [
        *((family, "attention.layer_norm_rms_epsilon", [None, -1.0, 0.0, float("nan"), 1, "x"]) for family in FAMILIES),
        *((family, "rope.freq_base", [0.0, -1.0, float("inf"), float("nan"), 7, "x"]) for family in FAMILIES),
        *((family, "attention.key_length", [0, 7, 2048, "x", 16.0]) for family in FAMILIES),
        *((family, "attention.value_length", [0, 24, "x"]) for family in FAMILIES),
        *((family, "attention.head_count_kv", [0, 3, 8, [2, 2], "x"]) for family in FAMILIES),
        *((family, "vocab_size", [0, 319, "x"]) for family in FAMILIES),
        *((family, "rope.scaling.type", ["su", "dynamic", 3, "longrope"]) for family in FAMILIES),
        *((family, "rope.dimension_count", [0, 7, 1 << 20, "x"]) for family in FAMILIES),
        ("llama-linear", "rope.scaling.factor", [None, 0.0, -4.0, float("nan"), 4, "x"]),
        ("qwen2-yarn", "rope.scaling.factor", [None, 0.0, float("inf")]),
        ("qwen2-yarn", "rope.scaling.original_context_length", [0, 1 << 30, 32.0, "x"]),
        ("qwen2-yarn", "rope.scaling.yarn_beta_fast", [0.0, float("nan"), 32]),
        ("qwen2-yarn", "rope.scaling.yarn_ext_factor", [0.5]),
        ("qwen2-yarn", "rope.freq_base", [1.0]),
        ("llama-linear", "rope.scaling.attn_factor", [0.5, "x"]),
        ("qwen2", "rope.scaling.attn_factor", [0.5, "x"]),
        ("phi3-longrope", "rope.scaling.attn_factor", [None, 0.0, float("nan"), 1, "x"]),
        ("phi3-longrope", "rope.scaling.original_context_length", [None, 0, "x"]),
        ("phi3-longrope", "rope.scaling.type", ["yarn", "linear"]),
        ("gemma3", "attention.sliding_window", [None, 0, -1 & 0xFFFFFFFF, 24.0, "x"]),
        ("gemma3", "rope.freq_base_swa", [0.0, float("nan"), 10_000]),
        ("gemma2", "attention.sliding_window_pattern", [True, 5000, "x", [0, 1]]),
        ("gemma2", "attn_logit_softcapping", [-1.0, float("nan"), 50, "x"]),
        ("gemma2", "final_logit_softcapping", [-1.0, float("inf"), "x"]),
        ("qwen2", "attention.sliding_window", [24]),  # which of its layers have the window is not said in a file
        ("qwen3", "attention.sliding_window", [24]),
    ],
)
def test_wrong_metadata_is_refused_by_name(tmp_path: Path, name: str, key: str, values: list[object]) -> None:
    tensors = tiny_family_tensors(name)
    for value in values:
        path = write_gguf(tmp_path / "m.gguf", tiny_family_metadata(name, **{f"__{key.replace('.', '__')}": value}), tensors)
        with pytest.raises(ModelFileError, match=f"the key '{TINY[name].family}.{key}'"):
            architecture_of(read_gguf(path))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("expert_count", 8),
        ("attention.max_alibi_bias", 8.0),
        ("attention.clamp_kqv", 10.0),
        ("attention.causal", False),
        ("use_parallel_residual", True),
        ("attention.temperature_scale", 0.1),
    ],
)
def test_networks_of_another_kind_are_refused_by_name_and_neutral_values_pass(tmp_path: Path, family: str, key: str, value: object) -> None:
    name = f"__{key.replace('.', '__')}"
    with pytest.raises(ModelFileError, match=f"'{family}.{key}' is {value}"):
        read(tmp_path, family, **{name: value})
    neutral = {bool: not value, float: 0.0, int: 0}[type(value)]
    read(tmp_path, family, **{name: neutral})


@pytest.mark.parametrize("architecture", ["gemma", "qwen2moe", "llama4", "mamba", ""])
def test_an_unknown_architecture_is_named_with_those_that_are_known(tmp_path: Path, architecture: str) -> None:
    with pytest.raises(ModelFileError, match=f"'{architecture}' is not supported; supported: llama, qwen2, qwen3, gemma2, gemma3, phi3"):
        read(tmp_path, "llama", general__architecture=architecture)


F32_64: TensorSpec = ("F32", (64,), bytes(256))


@pytest.mark.parametrize(
    ("name", "tensor", "spec", "named"),
    [
        ("qwen2", "blk.1.attn_k.bias", None, "blk.1.attn_k.bias' is missing"),
        ("qwen2", "blk.0.attn_q.bias", ("F32", (32,), bytes(128)), r"attn_q.bias' has the shape \(32,\), expected \(64,\)"),
        ("qwen2", "blk.0.attn_q.bias", ("F16", (64,), bytes(128)), "attn_q.bias' has the type F16; supported here: F32"),
        ("qwen3", "blk.0.attn_q_norm.weight", None, "attn_q_norm.weight' is missing"),
        ("qwen3", "blk.0.attn_q.bias", ("F32", (128,), bytes(512)), "attn_q.bias' is not part"),
        ("llama", "blk.0.post_ffw_norm.weight", F32_64, "post_ffw_norm.weight' is not part"),
        ("llama", "rope_freqs.weight", ("F32", (8,), bytes(32)), "rope_freqs.weight' has factors outside"),
        ("llama-factors", "rope_freqs.weight", ("F32", (7,), bytes(28)), r"rope_freqs.weight' is F32 \(7,\), expected F32 \(8,\)"),
        ("llama-factors", "rope_freqs.weight", ("F16", (8,), bytes(16)), "rope_freqs.weight' is F16"),
        ("gemma2", "blk.3.post_attention_norm.weight", None, "post_attention_norm.weight' is missing"),
        ("gemma3", "blk.6.attn_k_norm.weight", F32_64, r"attn_k_norm.weight' has the shape \(64,\)"),
        ("phi3", "blk.0.attn_qkv.weight", None, "blk.0.attn_q.weight' is missing"),
        ("phi3", "blk.0.attn_qkv.weight", ("F32", (96, 64), bytes(24576)), "attn_qkv.weight' has 96 rows, expected 64 . 32 . 32"),
        ("phi3", "blk.0.ffn_up.weight", ("F32", (150, 64), bytes(38400)), "ffn_up.weight' has 150 rows, expected 96 . 96"),
        ("phi3", "blk.1.attn_k.weight", ("F32", (32, 64), bytes(8192)), "'blk.1.attn_qkv.weight' and 'blk.1.attn_k.weight' hold the same"),
        ("phi3-longrope", "rope_factors_long.weight", None, "rope_factors_long.weight' is missing"),
        ("phi3-longrope", "rope_factors_short.weight", ("F32", (8,), np.full(8, np.nan, np.float32).tobytes()), "factors outside"),
    ],
)
def test_missing_strange_or_contradictory_tensors_are_refused_by_name(
    tmp_path: Path, name: str, tensor: str, spec: TensorSpec | None, named: str
) -> None:
    tensors = {**tiny_family_tensors(name), tensor: spec}
    path = write_gguf(tmp_path / "m.gguf", tiny_family_metadata(name), {key: item for key, item in tensors.items() if item})
    with pytest.raises(ModelFileError, match=named):
        load_model(path)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 2, 3, 16, 24, 64, 320, 1 << 24]),
    st.floats(width=32),
    st.sampled_from(["", "none", "linear", "yarn", "longrope"]),
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=8),
)


@given(name=st.sampled_from(sorted(TINY)), data=st.data())
@settings(max_examples=300)
def test_any_metadata_is_read_or_refused_with_a_typed_error(name: str, data: st.DataObject) -> None:
    metadata: dict[str, object] = tiny_family_metadata(name)
    keys = [key for key in {**metadata, **SCALING} if key.startswith(f"{TINY[name].family}.")]
    metadata |= data.draw(st.dictionaries(st.sampled_from(keys), VALUES, min_size=1, max_size=4))
    tensors = {name: Tensor(name, kind, shape, np.frombuffer(raw, np.uint8)) for name, (kind, shape, raw) in TENSORS[name].items()}
    values = {key: np.array(value) if isinstance(value, list) and key in keys else value for key, value in metadata.items()}
    gguf = GgufFile(Path("m.gguf"), {key: value for key, value in values.items() if value is not None}, tensors, 32)
    try:
        arch = architecture_of(gguf)
    except ModelFileError:
        return
    for layer in range(arch.num_layers):
        frequencies = arch.layer_rotary(layer).frequencies
        assert all(math.isfinite(frequency) and frequency > 0 for frequency in frequencies)
        assert len(frequencies) <= arch.head_dim // 2 and arch.window(layer) >= 0
    assert math.isfinite(arch.attention_scale * arch.rotary.magnitude) and arch.num_heads % arch.num_kv_heads == 0
