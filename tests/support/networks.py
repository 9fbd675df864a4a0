"""Random models of any network: what the families differ in, in small."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hybrid.quant.formats import quantize
from hybrid.shared_protocol.architecture import Rotary
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model


def rotary(dims: int, base: float = 10_000.0, interleaved: bool = False, magnitude: float = 1.0) -> Rotary:
    return Rotary(tuple(base ** (-2 * i / dims) for i in range(dims // 2)), interleaved, magnitude)


# what makes a family, as changes of the tiny Llama: hidden 64, 4 query and 2 key heads of 16, feed-forward 96, 2 layers
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {"rotary": rotary(16, 1e6), "qkv_bias": True},
    "qwen3": {"rotary": rotary(32, 1e6), "head_dim": 32, "attention_scale": 32**-0.5, "qk_norm": True},
    "mistral": {"windows": (24, 24)},
    "gemma2": {
        "rotary": rotary(16),
        "windows": (24, 0),
        "attention_softcap": 2.0,
        "logit_softcap": 3.0,
        "post_norms": True,
        "activation": "gelu_tanh",
        "embedding_scale": 8.0,
        "attention_scale": 0.2,
    },
    "gemma3": {
        "rotary": rotary(16, 1e6),
        "local_rotary": rotary(16),
        "windows": (24, 0),
        "qk_norm": True,
        "post_norms": True,
        "activation": "gelu_tanh",
        "embedding_scale": 8.0,
    },
    "phi3": {"rotary": rotary(16, magnitude=1.19), "head_dim": 32, "attention_scale": 32**-0.5, "tied_embeddings": False},
}


def random_network(base: Model, seed: int = 0, weights: str = "Q4_1", **changes: Any) -> Model:
    """A model with the tokenizer of `base`, its architecture with `changes`, and random weights."""
    arch = dataclasses.replace(base.architecture, **changes)
    rng = np.random.default_rng(seed)
    hidden, query, key = arch.hidden_size, arch.num_heads * arch.head_dim, arch.num_kv_heads * arch.head_dim
    tensors: dict[str, Tensor] = {}

    def add(name: str, shape: tuple[int, ...], type_name: str, centre: float, spread: float) -> None:
        values = (centre + spread * rng.standard_normal(shape)).astype(np.float32)
        tensors[name] = Tensor(name, type_name, shape, quantize(values, type_name))

    add("token_embd.weight", (arch.vocab_size, hidden), "Q8_0", 0, 0.5)
    if not arch.tied_embeddings:
        add("output.weight", (arch.vocab_size, hidden), "Q8_0", 0, 0.5)
    add("output_norm.weight", (hidden,), "F32", 1, 0.1)
    for number in range(arch.num_layers):
        norms = [("attn_norm", hidden), ("ffn_norm", hidden)]
        norms += [("attn_q_norm", arch.head_dim), ("attn_k_norm", arch.head_dim)] if arch.qk_norm else []
        norms += [("post_attention_norm", hidden), ("post_ffw_norm", hidden)] if arch.post_norms else []
        for part, size in norms:
            add(f"blk.{number}.{part}.weight", (size,), "F32", 1, 0.1)
        for part, size in [("attn_q", query), ("attn_k", key), ("attn_v", key)] if arch.qkv_bias else []:
            add(f"blk.{number}.{part}.bias", (size,), "F32", 0, 0.5)
        for part, rows, columns in [
            *(("attn_q", query, hidden), ("attn_k", key, hidden), ("attn_v", key, hidden), ("attn_output", hidden, query)),
            *(("ffn_gate", arch.ffn_size, hidden), ("ffn_up", arch.ffn_size, hidden), ("ffn_down", hidden, arch.ffn_size)),
        ]:
            add(f"blk.{number}.{part}.weight", (rows, columns), weights, 0, 0.2)
    return dataclasses.replace(base, architecture=arch, tensors=tensors)
