"""What the metadata of each family says."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid.shared_protocol.architecture import Architecture, Rotary
from hybrid.shared_protocol.architecture.gguf_architecture import architecture_of
from hybrid.shared_protocol.gguf import read_gguf
from hybrid.shared_protocol.model import load_model
from hybrid.tests.support.tiny_families import TINY, write_tiny


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
