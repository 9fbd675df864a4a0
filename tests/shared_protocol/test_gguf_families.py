"""What the metadata of each family says, and how files that lack or twist it are refused."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid.shared_protocol.architecture import Architecture, Rotary
from hybrid.shared_protocol.errors import ModelFileError
from hybrid.shared_protocol.gguf import GgufFile, Tensor, read_gguf
from hybrid.shared_protocol.gguf_architecture import FAMILIES, architecture_of
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


def plain(dims: int, base: float = 10_000.0, scale: float = 1.0) -> Rotary:
    return Rotary(pytest.approx(tuple(scale * base ** (-2 * i / dims) for i in range(dims // 2))), interleaved=False)


BASE: dict[str, Any] = {
    "num_layers": 2,
    "hidden_size": 64,
    "num_heads": 4,
    "num_kv_heads": 2,
    "head_dim": 16,
    "ffn_size": 96,
    "vocab_size": 320,
    "context_length": 512,
    "norm_eps": pytest.approx(1e-5),
    "rotary": plain(16),
    "tied_embeddings": True,
    "attention_scale": 0.25,
}
WIDE = {**BASE, "head_dim": 32, "attention_scale": pytest.approx(32**-0.5), "rotary": plain(32)}
GEMMA = {**WIDE, "activation": "gelu_tanh", "post_norms": True, "embedding_scale": 8.0}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("qwen2", {**BASE, "qkv_bias": True, "rotary": plain(16, 1e6)}),
        ("qwen3", {**WIDE, "qk_norm": True}),
        ("mistral", {**BASE, "tied_embeddings": False, "rotary": dataclasses.replace(plain(16), interleaved=True), "windows": (24, 24)}),
        ("gemma2", {**GEMMA, "num_layers": 4, "windows": (24, 0, 24, 0), "attention_softcap": 5.0, "logit_softcap": 8.0}),
        (
            "gemma3-linear",
            {
                **GEMMA,
                "num_layers": 6,
                "qk_norm": True,
                "windows": (24, 24, 24, 24, 24, 0),
                "rotary": plain(32, 1e6, 1 / 8),
                "local_rotary": plain(32),
            },
        ),
        ("phi3-window", {**BASE, "tied_embeddings": False, "windows": (24, 24)}),
    ],
)
def test_a_family_is_read_as_it_was_written(tmp_path: Path, name: str, expected: dict[str, Any]) -> None:
    assert read(tmp_path, name) == Architecture(family=TINY[name].family, **expected)


def test_every_sixth_layer_of_gemma_3_sees_all_and_turns_slower(tmp_path: Path) -> None:
    arch = read(tmp_path, "gemma3")
    assert arch.windows == (24, 24, 24, 24, 24, 0, 24)
    assert [arch.layer_rotary(layer).frequencies[1] for layer in (4, 5)] == pytest.approx([10_000 ** (-1 / 16), 10**-0.375])


@pytest.mark.parametrize(
    ("pattern", "windows"),
    [(2, (24, 0, 24, 0)), (4, (24, 24, 24, 0)), (0, (24, 24, 24, 24)), (1, (0, 0, 0, 0)), ([0, 1, 1, 0], (0, 24, 24, 0))],
)
def test_the_pattern_of_windows_is_a_period_or_a_list(tmp_path: Path, pattern: object, windows: tuple[int, ...]) -> None:
    assert read(tmp_path, "gemma2", __attention__sliding_window_pattern=pattern).windows == windows


@pytest.mark.parametrize("window", [0, 512, 1 << 20])
def test_a_window_of_nothing_or_of_the_whole_context_is_none(tmp_path: Path, window: int) -> None:
    for name in ("mistral", "qwen2", "gemma2", "phi3"):
        assert read(tmp_path, name, __attention__sliding_window=window).windows == ()


def test_a_local_layer_turns_by_its_own_base_however_wide_its_window_is(tmp_path: Path) -> None:
    arch = read(tmp_path, "gemma3", __attention__sliding_window=1024)
    assert arch.windows == (1024,) * 5 + (0, 1024)
    assert arch.layer_rotary(0) == arch.local_rotary != arch.layer_rotary(5)


def test_what_gemma_2_does_not_say_is_as_it_was_published(tmp_path: Path) -> None:
    silent = {"__attention__sliding_window": None, "__attn_logit_softcapping": None, "__final_logit_softcapping": None}
    arch = read(tmp_path, "gemma2", **silent, __context_length=8192)
    assert (arch.windows, arch.attention_softcap, arch.logit_softcap) == ((4096, 0, 4096, 0), 50.0, 30.0)


@pytest.mark.parametrize(("name", "layers", "scale"), [("gemma2", 46, 1 / 4), ("gemma2", 26, 32**-0.5), ("gemma3", 62, 1 / 4)])
def test_the_largest_gemmas_scale_their_scores_by_hidden_size_over_heads(tmp_path: Path, name: str, layers: int, scale: float) -> None:
    assert read(tmp_path, name, __block_count=layers).attention_scale == pytest.approx(scale)
    assert read(tmp_path, name, __block_count=layers, __attention__scale=0.125).attention_scale == 0.125


def test_llama_3s_factors_divide_the_frequencies(tmp_path: Path) -> None:
    factors = np.linspace(1, 8, 8).astype(np.float32).tolist()
    expected = [500_000 ** (-2 * i / 16) / factor for i, factor in enumerate(factors)]
    assert read(tmp_path, "llama-factors").rotary.frequencies == pytest.approx(expected)


def test_a_scaling_factor_without_a_type_is_linear(tmp_path: Path) -> None:
    assert read(tmp_path, "llama", __rope__scaling__factor=4.0) == read(tmp_path, "llama-linear")


def test_long_factors_serve_contexts_beyond_the_original_and_the_choice_is_made_once(tmp_path: Path) -> None:
    arch = read(tmp_path, "phi3-longrope")
    short, long = ([10_000 ** (-i / 8) / (1 + end * i / 7) for i in range(8)] for end in (8, 7))
    magnitude = math.sqrt(1 + math.log(2) / math.log(256))
    for tokens, frequencies in ((100, short), (256, short), (257, long), (10_000, long)):
        opened = arch.for_context(tokens)
        assert opened.rotary == Rotary(pytest.approx(tuple(frequencies)), interleaved=False, magnitude=pytest.approx(magnitude))
        assert opened.context_length == min(tokens, 512)
        assert opened.for_context(64).rotary == opened.rotary
    assert arch.for_context(300).for_context(1000).context_length == 300


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


@pytest.mark.parametrize("weights", ["F32", "Q8_0", "Q4_1"])
def test_fused_tensors_are_views_of_the_file_under_the_names_of_their_parts(tmp_path: Path, weights: str) -> None:
    fused = load_model(write_tiny(tmp_path / "m.gguf", "phi3", weights=weights))
    raw = read_gguf(fused.path).tensors
    for whole, parts in (("attn_qkv", ("attn_q", "attn_k", "attn_v")), ("ffn_up", ("ffn_gate", "ffn_up"))):
        pieces = [fused.tensors[f"blk.1.{part}.weight"] for part in parts]
        np.testing.assert_array_equal(np.concatenate([piece.data for piece in pieces]), raw[f"blk.1.{whole}.weight"].data)
        assert all(not piece.data.flags.owndata for piece in pieces)
    assert "blk.1.attn_qkv.weight" not in fused.tensors


def test_factors_of_the_rotation_are_no_weights(tmp_path: Path) -> None:
    model = load_model(write_tiny(tmp_path / "m.gguf", "phi3-longrope"))
    assert not [name for name in model.tensors if "rope" in name]


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
