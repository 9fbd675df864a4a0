"""Tiny random models of every family as GGUF files: real in every way but their words.

The sizes are small, everything that sets a family apart is there: grouped heads, local and global layers, windows and caps that a prompt
of 70 tokens meets, scaled frequencies. Weights come from NumPy's frozen legacy generator, so a seed gives the same file for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from hybrid.quant.formats import quantize
from hybrid.tests.support.gguf_writer import TensorSpec, tiny_metadata, write_gguf

VOCAB = 320
HIDDEN = 64
HEADS, KV_HEADS = 4, 2
FFN = 96
CONTEXT = 512
WINDOW = 24
Values = dict[str, np.ndarray]  # GGUF's name of a tensor, unfused -> float32


@dataclass(frozen=True)
class TinyFamily:
    """What sets one model apart; `keys` are metadata with the family's prefix left out."""

    family: str
    layers: int = 2
    heads: int = HEADS
    kv_heads: int = KV_HEADS
    head_dim: int = HIDDEN // HEADS
    keys: Mapping[str, object] = field(default_factory=dict)
    qkv_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False
    fused: bool = False
    untied: bool = False
    factors: tuple[str, ...] = ()  # tensors of rotary factors
    rotary_dims: int = 0  # 0: the whole head


_GEMMA = {"attention.key_length": 32, "attention.value_length": 32, "attention.sliding_window": WINDOW, "rope.dimension_count": None}
ORIGINAL_CONTEXT = 256  # of the one with long and short factors
_LONGROPE = {
    "rope.scaling.original_context_length": ORIGINAL_CONTEXT,
    "rope.scaling.attn_factor": math.sqrt(1 + math.log(CONTEXT / ORIGINAL_CONTEXT) / math.log(ORIGINAL_CONTEXT)),
}
_YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 128}
TINY: Mapping[str, TinyFamily] = {
    "llama": TinyFamily("llama"),
    "llama-factors": TinyFamily("llama", untied=True, factors=("rope_freqs",), keys={"rope.freq_base": 500_000.0}),
    "llama-linear": TinyFamily("llama", keys={"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
    "mistral": TinyFamily("llama", untied=True, keys={"attention.sliding_window": WINDOW}),
    "qwen2": TinyFamily("qwen2", qkv_bias=True, keys={"rope.freq_base": 1_000_000.0}),
    "qwen2-yarn": TinyFamily("qwen2", qkv_bias=True, untied=True, keys=_YARN),
    "qwen3": TinyFamily(
        "qwen3", head_dim=32, qk_norm=True, keys={"attention.key_length": 32, "attention.value_length": 32, "rope.dimension_count": None}
    ),
    "gemma2": TinyFamily(
        "gemma2",
        layers=4,
        head_dim=32,
        post_norms=True,
        keys={**_GEMMA, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 8.0},
    ),
    "gemma3": TinyFamily("gemma3", layers=7, head_dim=32, qk_norm=True, post_norms=True, keys={**_GEMMA, "rope.freq_base": 1e6}),
    "gemma3-linear": TinyFamily(
        "gemma3",
        layers=6,
        head_dim=32,
        qk_norm=True,
        post_norms=True,
        keys={**_GEMMA, "rope.freq_base": 1e6, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
    ),
    "phi3": TinyFamily("phi3", untied=True, fused=True),
    "phi3-window": TinyFamily("phi3", untied=True, fused=True, keys={"attention.sliding_window": WINDOW}),
    "phi3-longrope": TinyFamily(
        "phi3",
        heads=2,
        kv_heads=1,
        head_dim=32,
        fused=True,
        factors=("rope_factors_long", "rope_factors_short"),
        rotary_dims=16,
        keys={**_LONGROPE, "rope.dimension_count": 16},
    ),
}


def write_tiny(path: Path, name: str, *, seed: int = 0, weights: str = "F32", embedding: str | None = None, **changes: object) -> Path:
    """A valid file of the model `name` of TINY, matrices in the type `weights`; `changes` override keys (see `tiny_metadata`)."""
    return write_gguf(path, tiny_family_metadata(name, **changes), tiny_family_tensors(name, seed, weights, embedding or weights))


def tiny_family_metadata(name: str, **changes: object) -> dict[str, object]:
    """Keys of a tiny model. In `changes`, `__` stands for `.`, and a leading `__` for the family's prefix; None removes a key."""
    tiny = TINY[name]
    metadata = tiny_metadata(VOCAB, tiny.layers)
    metadata = {key.replace("llama.", f"{tiny.family}.", 1): item for key, item in metadata.items()}
    metadata["general.architecture"] = tiny.family
    metadata |= {f"{tiny.family}.attention.head_count": tiny.heads, f"{tiny.family}.attention.head_count_kv": tiny.kv_heads}
    metadata |= {f"{tiny.family}.{key}": item for key, item in tiny.keys.items()}
    for key, item in changes.items():
        dotted = key.replace("__", ".")
        metadata[tiny.family + dotted if dotted.startswith(".") else dotted] = item
    return {key: item for key, item in metadata.items() if item is not None}


def tiny_family_tensors(name: str, seed: int = 0, weights: str = "F32", embedding: str = "F32") -> dict[str, TensorSpec]:
    """The tensors as a file holds them: those that its family stores as one are fused."""
    values = tiny_values(name, seed)
    if TINY[name].fused:
        for number in range(TINY[name].layers):
            layer = f"blk.{number}."
            values[f"{layer}attn_qkv.weight"] = np.concatenate([values.pop(f"{layer}attn_{part}.weight") for part in "qkv"])
            values[f"{layer}ffn_up.weight"] = np.concatenate([values.pop(f"{layer}ffn_{part}.weight") for part in ("gate", "up")])
    tensors: dict[str, TensorSpec] = {}
    for tensor, array in values.items():
        kind = "F32" if array.ndim == 1 else embedding if tensor == "token_embd.weight" else weights
        tensors[tensor] = kind, array.shape, quantize(array, kind).tobytes()
    return tensors


def tiny_values(name: str, seed: int = 0) -> Values:
    """Every weight as float32, in GGUF's conventions (llama's q and k permuted, Gemma's norms around one) and unfused."""
    tiny = TINY[name]
    rng = np.random.RandomState(seed)
    query, key = tiny.heads * tiny.head_dim, tiny.kv_heads * tiny.head_dim
    values: Values = {}

    def matrix(tensor: str, rows: int, columns: int, spread: float) -> None:
        values[f"{tensor}.weight"] = (rng.standard_normal((rows, columns)) * spread).astype(np.float32)

    def norm(tensor: str, size: int = HIDDEN) -> None:
        values[f"{tensor}.weight"] = (1 + 0.1 * rng.standard_normal(size)).astype(np.float32)

    matrix("token_embd", VOCAB, HIDDEN, 0.5)
    for number in range(tiny.layers):
        layer = f"blk.{number}."
        norm(f"{layer}attn_norm")
        for part, rows, columns in [("q", query, HIDDEN), ("k", key, HIDDEN), ("v", key, HIDDEN), ("output", HIDDEN, query)]:
            matrix(f"{layer}attn_{part}", rows, columns, 0.2)
        if tiny.qkv_bias:
            for part, rows in [("q", query), ("k", key), ("v", key)]:
                values[f"{layer}attn_{part}.bias"] = rng.standard_normal(rows).astype(np.float32)
        if tiny.qk_norm:
            norm(f"{layer}attn_q_norm", tiny.head_dim)
            norm(f"{layer}attn_k_norm", tiny.head_dim)
        norm(f"{layer}ffn_norm")
        if tiny.post_norms:
            norm(f"{layer}post_attention_norm")
            norm(f"{layer}post_ffw_norm")
        for part, rows, columns in [("gate", FFN, HIDDEN), ("up", FFN, HIDDEN), ("down", HIDDEN, FFN)]:
            matrix(f"{layer}ffn_{part}", rows, columns, 0.2)
    norm("output_norm")
    if tiny.untied:
        matrix("output", VOCAB, HIDDEN, 0.5)
    pairs = (tiny.rotary_dims or tiny.head_dim) // 2
    for index, tensor in enumerate(tiny.factors):
        values[f"{tensor}.weight"] = np.linspace(1.0, 8.0 + index, pairs).astype(np.float32)
    return values
