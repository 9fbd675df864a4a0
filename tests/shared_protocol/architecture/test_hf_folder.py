"""Folders of config.json and safetensors: the same network as a GGUF file of the same weights, and refusals that name what is at fault."""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.quant.formats import dequantize
from hybrid.shared_protocol.architecture.hf_config import FAMILIES, architecture_of_config
from hybrid.shared_protocol.architecture.hf_folder import read_folder
from hybrid.shared_protocol.architecture.hf_keys import Keys
from hybrid.shared_protocol.architecture.hf_rotary import KINDS
from hybrid.shared_protocol.errors import ModelFileError, ModelNotFound
from hybrid.shared_protocol.model import Model, load_model
from hybrid.tests.support.hf_writer import CONFIGS, tiny_config, tiny_hf_tensors, write_tiny_folder
from hybrid.tests.support.safetensors_writer import packed, write_safetensors, write_shards
from hybrid.tests.support.steps import relative_errors, run
from hybrid.tests.support.tiny_families import CONTEXT, ORIGINAL_CONTEXT, VOCAB, write_tiny
from hypothesis import given
from hypothesis import strategies as st

IDS = [(i * 7919 + 11) % VOCAB for i in range(70)]
TABLE = [3, 1, 4, 5, 2]
LONGROPE = {"type": "longrope", "long_factor": [1.0] * 8}


def logits(model: Model, context: int) -> np.ndarray:
    return run(ReferenceExecutor(model.for_context(context), num_blocks=33, kv_type="f32"), IDS, TABLE)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_folder_computes_what_the_same_weights_compute_as_gguf(name: str, tmp_path: Path) -> None:
    gguf = load_model(write_tiny(tmp_path / "m.gguf", name))
    folder = read_folder(write_tiny_folder(tmp_path / "folder", name))
    model = dataclasses.replace(gguf, architecture=folder.architecture, tensors=folder.tensors)
    for context in (ORIGINAL_CONTEXT, CONTEXT):
        errors = relative_errors(logits(model, context), logits(gguf, context))
        assert errors.mean() < 1e-6
        assert errors.max() < 3e-6  # a head's pairs are summed in another order where GGUF permutes them
    assert folder.tensors.keys() == gguf.tensors.keys()
    assert not folder.architecture.rotary.interleaved


def test_every_supported_model_type_is_tried() -> None:
    assert {config["model_type"] for config in CONFIGS.values()} == set(FAMILIES)


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_matrices_stay_in_their_type_and_on_the_disk_and_vectors_become_float32(dtype: str, tmp_path: Path) -> None:
    folder = read_folder(write_tiny_folder(tmp_path / "f", "phi3", dtype=dtype))
    for tensor in folder.tensors.values():
        assert tensor.type_name == (dtype if len(tensor.shape) == 2 else "F32")
        assert len(tensor.shape) == 1 or not tensor.data.flags.owndata
    exact = read_folder(write_tiny_folder(tmp_path / "g", "phi3"))
    for name in ("blk.1.attn_k.weight", "blk.0.ffn_up.weight", "output_norm.weight"):  # two of them cut out of one tensor
        np.testing.assert_allclose(dequantize(folder.tensors[name]), dequantize(exact.tensors[name]), rtol=2**-7, atol=1e-6)


def test_shards_are_one_model(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path / "f", "llama")
    whole = {name: bytes(tensor.data) for name, tensor in read_folder(folder).tensors.items()}
    (folder / "model.safetensors").unlink()
    write_shards(folder, tiny_hf_tensors("llama"), 3)
    parts = read_folder(folder)
    assert {name: bytes(tensor.data) for name, tensor in parts.tensors.items()} == whole


def config_of(name: str, **changes: object) -> Any:
    return architecture_of_config(Keys("config.json", tiny_config(name, **changes)))


def test_llama_3_scaling_worked_out_by_hand() -> None:
    # heads of 16, base 10,000: frequency of pair i is 10^(-i / 2). In 400 positions pair i turns 400 * 10^(-i / 2) / 2 pi times:
    # 63.7, 20.1, 6.37, 2.01, 0.637, ... Above 4 turns nothing changes, below 1 it is an eighth, pair 3 is between them.
    scaling = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 400}
    found = config_of("llama", rope_scaling=scaling).rotary.frequencies
    turns = 400 * 10**-1.5 / (2 * math.pi)
    share = (turns - 1) / 3
    expected = [1, 10**-0.5, 0.1, 10**-1.5 * (share + (1 - share) / 8), *(10 ** (-i / 2) / 8 for i in range(4, 8))]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "changes", "windows"),
    [
        ("mistral", {"sliding_window": None}, ()),
        ("mistral", {"sliding_window": 512}, ()),  # the whole context
        ("mistral", {"sliding_window": 100}, (100, 100)),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 1}, (0, 64)),
        ("qwen3", {"use_sliding_window": True, "sliding_window": 9, "layer_types": ["sliding_attention", "full_attention"]}, (9, 0)),
        ("gemma2", {}, (24, 0, 24, 0)),
        ("gemma3", {"sliding_window_pattern": 2}, (24, 0, 24, 0, 24, 0, 24)),
        ("gemma3", {"sliding_window_pattern": None, "_sliding_window_pattern": 3}, (24, 24, 0, 24, 24, 0, 24)),
        ("gemma3", {"sliding_window_pattern": None}, (24, 24, 24, 24, 24, 0, 24)),
        ("gemma3", {"sliding_window": 1024}, (1024, 1024, 1024, 1024, 1024, 0, 1024)),  # which layers turn by the local base
        ("llama", {"sliding_window": 24}, ()),  # a key that its family does not have
    ],
)
def test_which_layers_have_a_window(name: str, changes: dict[str, Any], windows: tuple[int, ...]) -> None:
    assert config_of(name, **changes).windows == windows


def test_caps_scales_and_activations_follow_the_keys() -> None:
    gemma = config_of("gemma2", attn_logit_softcapping=None, query_pre_attn_scalar=64)
    assert (gemma.attention_softcap, gemma.logit_softcap, gemma.attention_scale, gemma.embedding_scale) == (0.0, 8.0, 0.125, 8.0)
    assert (gemma.activation, gemma.tied_embeddings) == ("gelu_tanh", True)
    assert config_of("gemma3").logit_softcap == 0.0
    llama = config_of("llama", hidden_act="gelu_pytorch_tanh", num_key_value_heads=None, tie_word_embeddings=False)
    assert (llama.activation, llama.num_kv_heads, llama.tied_embeddings) == ("gelu_tanh", 4, False)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model_type": "mamba"}, "'mamba' is not supported; supported: llama, mistral, qwen2"),
        ({"model_type": None}, "'model_type' is missing"),
        ({"model_type": ["llama"]}, "'model_type' must be str"),
        ({"hidden_size": None}, "'hidden_size' is missing"),
        ({"hidden_size": 64.0}, "'hidden_size' must be int, found float"),
        ({"hidden_size": True}, "'hidden_size' must be int, found bool"),
        ({"hidden_size": 65}, "'hidden_size' 65 is no multiple"),
        ({"hidden_size": 10**30}, "'hidden_size' must lie"),
        ({"num_attention_heads": 0}, "'num_attention_heads'"),
        ({"num_key_value_heads": 3}, "'num_key_value_heads' 3 does not divide"),
        ({"head_dim": 15}, "'head_dim'"),
        ({"num_hidden_layers": -1}, "'num_hidden_layers'"),
        ({"num_hidden_layers": 3}, r"blk.2.*is missing"),
        ({"num_hidden_layers": 1}, r"blk.1.*is not part"),
        ({"intermediate_size": 128}, r"ffn_gate.*shape \(96, 64\), expected \(128, 64\)"),
        ({"vocab_size": 300}, r"token_embd.*shape \(320, 64\), expected \(300, 64\)"),
        ({"rms_norm_eps": float("nan")}, "'rms_norm_eps'"),
        ({"rms_norm_eps": "1e-5"}, "'rms_norm_eps' must be float, found str"),
        ({"rope_theta": 0}, "'rope_theta'"),
        ({"rope_theta": float("inf")}, "'rope_theta'"),
        ({"rope_scaling": "linear"}, "'rope_scaling' must be dict"),
        ({"rope_scaling": {"type": "magic"}}, "'rope_scaling.type' is 'magic'; supported: default, linear"),
        ({"rope_scaling": {"type": "linear"}}, "'rope_scaling.factor' is missing"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "'rope_scaling.low_freq_factor' is missing"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}}, "must be below"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "original_max_position_embeddings' is missing"),
        ({"hidden_act": "relu"}, "'hidden_act' is 'relu'; supported: silu, gelu_pytorch_tanh"),
        ({"attention_bias": True}, "'attention_bias' is True, only False is supported"),
        ({"mlp_bias": True}, "'mlp_bias'"),
        ({"quantization_config": {"quant_method": "gptq"}}, "'quantization_config'.*gptq"),
        ({"tie_word_embeddings": False}, r"'output.weight' is missing"),
        ({"tie_word_embeddings": "yes"}, "'tie_word_embeddings' must be bool"),
        ({"max_position_embeddings": 0}, "'max_position_embeddings'"),
    ],
)
def test_missing_or_absurd_keys_are_refused_by_name(changes: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=named):
        read_folder(write_tiny_folder(tmp_path, "llama", **changes))


@pytest.mark.parametrize(
    ("name", "changes", "named"),
    [
        ("gemma3-linear", {"layer_types": ["full_attention"]}, "'layer_types' must name.*6 layers"),
        ("gemma3-linear", {"layer_types": ["chunked_attention"] * 6}, "'layer_types'"),
        ("gemma3", {"sliding_window": None}, "'sliding_window' must be at least 1"),
        ("gemma3", {"use_bidirectional_attention": True}, "'use_bidirectional_attention'"),
        ("gemma3", {"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}, "'rope_parameters.sliding_attention' is missing"),
        ("phi3-longrope", {"rope_scaling": {**LONGROPE, "short_factor": [1.0] * 5}}, "short_factor' has 5"),
        ("phi3-longrope", {"rope_scaling": {**LONGROPE, "short_factor": [0.0] * 8}}, "short_factor' must be"),
        ("phi3-longrope", {"partial_rotary_factor": 0.6}, "'partial_rotary_factor' 0.6 rotates 19 of 32 inputs, which are no pairs"),
        ("qwen2-yarn", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0}}, "'rope_scaling.mscale' is not supported"),
    ],
)  # fmt: skip
def test_keys_of_single_families_are_checked_too(name: str, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelFileError, match=named):
        config_of(name, **changes)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-3, 600)
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["yarn", "linear"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)
SCALING_KEYS = ("type", "rope_type", "factor", "rope_theta", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
                "beta_fast", "beta_slow", "attention_factor", "partial_rotary_factor", "short_factor", "long_factor")  # fmt: skip


@given(data=st.data(), name=st.sampled_from(sorted(CONFIGS)))
def test_any_value_of_any_key_is_taken_or_refused_by_name(data: Any, name: str) -> None:
    config = tiny_config(name)
    if data.draw(st.booleans()):
        kind = data.draw(st.sampled_from(KINDS))
        config["rope_scaling"] = {"type": kind, **data.draw(st.dictionaries(st.sampled_from(SCALING_KEYS), JSON, max_size=6))}
    for key in data.draw(st.lists(st.sampled_from([*config, "rope_parameters", "rope_theta"]), max_size=3)):
        config[key] = data.draw(JSON)
    try:
        architecture = architecture_of_config(Keys("config.json", config))
    except ModelFileError as error:
        assert "key" in str(error) or "model_type" in str(error)
        return
    assert all(math.isfinite(frequency) for frequency in architecture.rotary.frequencies)
    assert math.isfinite(architecture.attention_scale)


@pytest.mark.parametrize(
    ("tensor", "named"),
    [
        ("model.layers.0.self_attn.q_proj.bias", r"'blk.0.attn_q.bias' is not part"),
        ("model.layers.00.mlp.up_proj.weight", "'model.layers.00.mlp.up_proj.weight' is not part"),
        ("model.layers.0.mlp.experts.weight", "'model.layers.0.mlp.experts.weight' is not part"),
        ("score.weight", "'score.weight' is not part"),
        ("model.layers.0.post_feedforward_layernorm.weight", "is not part"),
    ],
)
def test_tensors_that_would_be_ignored_are_refused_by_name(tensor: str, named: str, tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path, "llama")
    write_safetensors(folder / "model.safetensors", {**tiny_hf_tensors("llama"), tensor: packed(np.ones((64,), np.float32))})
    with pytest.raises(ModelFileError, match=named):
        read_folder(folder)


def test_what_a_config_already_says_may_lie_there_again(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path, "llama")
    extra = {
        "model.layers.0.self_attn.rotary_emb.inv_freq": packed(np.ones(8, np.float32)),
        "lm_head.weight": packed(np.ones((320, 64), np.float32)),  # tied: the embedding counts
    }
    write_safetensors(folder / "model.safetensors", {**tiny_hf_tensors("llama"), **extra})
    assert "output.weight" not in read_folder(folder).tensors


@pytest.mark.parametrize(
    ("content", "named"), [(b"{", "no JSON"), (b"[]", "object"), (b'{"a": 1, "a": 2}', "'a' occurs twice"), (b"\xff", "8")]
)
def test_a_config_that_is_none_is_refused_with_its_file(content: bytes, named: str, tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path, "llama")
    (folder / "config.json").write_bytes(content)
    with pytest.raises(ModelFileError, match=f"config.json.*{named}"):
        read_folder(folder)


def test_a_config_too_large_to_be_one_is_refused(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path, "llama")
    with (folder / "config.json").open("wb") as file:
        file.truncate(1 << 30)  # sparse
    with pytest.raises(ModelFileError, match=r"config\.json has 1,073,741,824 bytes, the limit is"):
        read_folder(folder)


def test_a_folder_without_a_config_is_no_model_and_a_pipe_is_no_config(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"no config\.json"):
        read_folder(tmp_path)
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(ModelFileError, match="is no file"):
        read_folder(tmp_path)
