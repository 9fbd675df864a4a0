"""Tiny random models as folders of config.json and safetensors: the weights of `tiny_families`, in the conventions of transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hybrid.tests.support.gguf_writer import CHATML, SPECIALS, tiny_vocabulary
from hybrid.tests.support.safetensors_writer import Packed, packed, write_safetensors
from hybrid.tests.support.tiny_families import CONTEXT, FFN, HIDDEN, ORIGINAL_CONTEXT, TINY, VOCAB, WINDOW, tiny_values

_GEMMA = {
    "head_dim": 32,
    "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 32,
    "sliding_window": WINDOW,
    "tie_word_embeddings": None,  # their default
}
_PHI3 = {"model_type": "phi3", "attention_bias": False}
# model of TINY -> what its config.json says beside the sizes
CONFIGS: Mapping[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "attention_bias": False, "mlp_bias": False, "rope_scaling": None},
    "llama-linear": {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 4.0}},
    "mistral": {"model_type": "mistral", "sliding_window": WINDOW},
    "qwen2": {"model_type": "qwen2", "rope_theta": 1_000_000.0, "use_sliding_window": False, "sliding_window": 64, "max_window_layers": 2},
    "qwen2-yarn": {"model_type": "qwen2", "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}},
    "qwen3": {"model_type": "qwen3", "head_dim": 32, "use_sliding_window": False},
    "gemma2": {"model_type": "gemma2", **_GEMMA, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 8.0},
    "gemma3": {"model_type": "gemma3_text", **_GEMMA, "rope_theta": 1e6, "rope_local_base_freq": 10_000, "sliding_window_pattern": 6},
    "gemma3-linear": {
        "model_type": "gemma3_text",
        **_GEMMA,
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
    },
    "phi3": {**_PHI3, "sliding_window": None},
    "phi3-window": {**_PHI3, "sliding_window": WINDOW},
    "phi3-longrope": {
        **_PHI3,
        "original_max_position_embeddings": ORIGINAL_CONTEXT,
        "partial_rotary_factor": 0.5,
        "rope_scaling": {
            "type": "longrope",
            "long_factor": np.linspace(1.0, 8.0, 8).tolist(),
            "short_factor": np.linspace(1.0, 9.0, 8).tolist(),
        },
    },
}


def tiny_config(name: str, **changes: object) -> dict[str, Any]:
    """config.json of a tiny model; `changes` override keys, None stays null."""
    config = {
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_attention_heads": TINY[name].heads,
        "num_key_value_heads": TINY[name].kv_heads,
        "num_hidden_layers": TINY[name].layers,
        "max_position_embeddings": CONTEXT,
        "vocab_size": VOCAB,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": not TINY[name].untied,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
    }
    return {**config, **CONFIGS[name], **changes}


def tiny_hf_tensors(name: str, seed: int = 0, dtype: str = "F32") -> dict[str, Packed]:
    """The weights under their names in transformers."""
    tiny, tensors = TINY[name], {}
    for stored, values in tiny_values(name, seed).items():
        if not stored.startswith("rope_"):
            gemma = tiny.family.startswith("gemma") and stored.endswith("norm.weight")
            turned = tiny.family == "llama" and stored.split(".")[-2] in ("attn_q", "attn_k")
            values = values - np.float32(1) if gemma else _rotate_half_order(values, tiny.head_dim) if turned else values
            tensors[_name(stored, tiny.post_norms)] = values
    if tiny.fused:
        for number in range(tiny.layers):
            layer = f"model.layers.{number}."
            parts = [tensors.pop(f"{layer}self_attn.{part}_proj.weight") for part in "qkv"]
            tensors[f"{layer}self_attn.qkv_proj.weight"] = np.concatenate(parts)
            parts = [tensors.pop(f"{layer}mlp.{part}_proj.weight") for part in ("gate", "up")]
            tensors[f"{layer}mlp.gate_up_proj.weight"] = np.concatenate(parts)
    return {stored: packed(values, dtype) for stored, values in tensors.items()}


def write_tokenizer(folder: Path) -> None:
    """tokenizer.json and its neighbour with the vocabulary and template of `write_tiny`: a byte-level BPE, as SmolLM2 has it."""
    tokens, merges, _ = tiny_vocabulary(VOCAB)
    added = [
        {"id": number, "content": text, "special": True, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
        for number, text in enumerate(SPECIALS)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    root = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": merges,
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(root))
    names = {"bos_token": SPECIALS[1], "eos_token": SPECIALS[2], "chat_template": CHATML, "tokenizer_class": "GPT2Tokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))


def write_tiny_folder(folder: Path, name: str, seed: int = 0, dtype: str = "F32", **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(tiny_config(name, **changes)))
    write_safetensors(folder / "model.safetensors", tiny_hf_tensors(name, seed, dtype), {"format": "pt"})
    return folder


def _rotate_half_order(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """From pairs side by side, as GGUF files of Llama have them, to first halves above second ones."""
    return rows.reshape(-1, head_dim // 2, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def _name(stored: str, post_norms: bool) -> str:
    outer = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}
    if stored in outer:
        return outer[stored]
    _, number, part, kind = stored.split(".")
    parts = {
        "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "attn_q_norm": "self_attn.q_norm",
        "attn_k_norm": "self_attn.k_norm",
        "ffn_norm": "pre_feedforward_layernorm" if post_norms else "post_attention_layernorm",
        "post_attention_norm": "post_attention_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    return f"model.layers.{number}.{parts[part]}.{kind}"
