"""What kind of network a GGUF file holds, by its metadata.

Keys and their defaults: the GGUF specification, and llama.cpp's loader where the specification is silent (Gemma's windows and scales are
not all in its files).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..errors import ModelFileError
from ..gguf import GgufFile
from .architecture import Architecture
from .gguf_metadata import Metadata
from .gguf_rotary import Rotaries, rotaries_of


@dataclass(frozen=True, slots=True)
class Family:
    """What all files of one `general.architecture` share, and no key says."""

    interleaved: bool = False  # pairs of the rotary embedding
    activation: Literal["silu", "gelu_tanh"] = "silu"
    qkv_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False
    scaled_embedding: bool = False  # by sqrt(hidden_size)
    partial_rotary: bool = False  # the end of a head may stay as it is
    takes_window: bool = True
    window_period: int = 0  # of so many layers all but the last have the window; 0: all layers have it
    window: int | None = 0  # when no key says; None: the key is required
    local_base: float | None = None  # of the layers that have a window
    attention_softcap: float = 0.0
    logit_softcap: float = 0.0
    wide_layers: int = 0  # a network of so many layers scales its scores by 1 / sqrt(hidden_size // num_heads)


FAMILIES = {
    "llama": Family(interleaved=True),  # Llama 2 and 3, SmolLM2, Mistral: files hold q and k permuted for interleaved pairs
    "qwen2": Family(qkv_bias=True, takes_window=False),
    "qwen3": Family(qk_norm=True, takes_window=False),
    "gemma2": Family(
        activation="gelu_tanh",
        post_norms=True,
        scaled_embedding=True,
        window_period=2,
        window=4096,
        attention_softcap=50.0,
        logit_softcap=30.0,
        wide_layers=46,
    ),
    "gemma3": Family(
        activation="gelu_tanh",
        qk_norm=True,
        post_norms=True,
        scaled_embedding=True,
        window_period=6,
        window=None,
        local_base=10_000.0,
        wide_layers=62,
    ),
    "phi3": Family(partial_rotary=True),
}

# Keys that change what is computed in ways that no executor here knows, and the value that changes nothing.
NEUTRAL: dict[str, object] = {
    ".expert_count": 0,
    ".use_parallel_residual": False,
    ".attention.causal": True,
    ".attention.max_alibi_bias": 0.0,
    ".attention.clamp_kqv": 0.0,
    ".attention.temperature_scale": 0.0,
    ".attention.shared_kv_layers": 0,
    ".logit_scale": 1.0,
    ".residual_scale": 1.0,
    ".embedding_scale": 1.0,
}


def architecture_of(gguf: GgufFile) -> Architecture:
    """Read and check every size. Raises ModelFileError naming the key or tensor at fault, and what is supported."""
    meta = Metadata(gguf)
    family = FAMILIES.get(meta.family)
    if family is None:
        known = ", ".join(FAMILIES)
        raise ModelFileError(f"{meta.file}: the architecture {meta.family[:40]!r} is not supported; supported: {known}")
    for key, value in NEUTRAL.items():
        meta.same(key, value)
    heads = meta.integer(".attention.head_count", 1, 1024)
    hidden = meta.integer(".embedding_length", 1, 1 << 17)
    kv_heads = meta.integer(".attention.head_count_kv", 1, heads, default=heads)
    meta.require(heads % kv_heads == 0, ".attention.head_count_kv", f"{kv_heads} does not divide the {heads} heads")
    if ".attention.key_length" not in meta:
        meta.require(hidden % heads == 0, ".embedding_length", f"{hidden} is no multiple of the {heads} heads")
    head_dim = meta.integer(".attention.key_length", 2, 1024, default=hidden // heads)
    meta.require(head_dim % 2 == 0, ".attention.key_length", f"heads of {head_dim} have no rotary pairs")
    meta.same(".attention.value_length", head_dim)
    layers = meta.integer(".block_count", 1, 1024)
    context = meta.integer(".context_length", 1, 1 << 24)
    windows = _windows(meta, family, layers, context)
    rotaries = _rotaries(gguf, meta, family, head_dim, context)
    embedding = gguf.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise ModelFileError(f"{meta.file}: the tensor 'token_embd.weight' is missing or no matrix")
    meta.same(".vocab_size", embedding.shape[0])
    scaled_by = hidden // heads if layers == family.wide_layers else head_dim
    return Architecture(
        family=meta.family,
        num_layers=layers,
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        ffn_size=meta.integer(".feed_forward_length", 1, 1 << 20),
        vocab_size=embedding.shape[0],
        context_length=context,
        norm_eps=meta.number(".attention.layer_norm_rms_epsilon", 1e-12, 0.1),
        rotary=rotaries.plain,
        tied_embeddings="output.weight" not in gguf.tensors,
        attention_scale=meta.number(".attention.scale", 1e-6, 1e6, default=1 / math.sqrt(scaled_by)),
        windows=windows,
        local_rotary=rotaries.local,
        long_rotary=rotaries.long,
        original_context=rotaries.original_context,
        activation=family.activation,
        qkv_bias=family.qkv_bias,
        qk_norm=family.qk_norm,
        post_norms=family.post_norms,
        embedding_scale=math.sqrt(hidden) if family.scaled_embedding else 1.0,
        attention_softcap=meta.number(".attn_logit_softcapping", 0.0, 1e6, default=family.attention_softcap),
        logit_softcap=meta.number(".final_logit_softcapping", 0.0, 1e6, default=family.logit_softcap),
    )


def _windows(meta: Metadata, family: Family, layers: int, context: int) -> tuple[int, ...]:
    """Per layer, or () when no query ever loses sight of a position."""
    key, pattern = ".attention.sliding_window", ".attention.sliding_window_pattern"
    local = family.local_base is not None or ".rope.freq_base_swa" in meta  # a layer with a window turns by it, however wide the window
    window = meta.integer(key, int(local), 1 << 30, default=family.window)
    if window == 0 or (window >= context and not local):
        return ()
    meta.require(family.takes_window, key, f"is {window}: which layers of a {meta.family} have a window is not said in its files")
    if isinstance(meta.values.get(meta.full(pattern)), int):
        period = meta.integer(pattern, 0, 1024)
    elif pattern in meta:
        return tuple(window if entry else 0 for entry in meta.numbers(pattern, layers))
    else:
        period = family.window_period
    return tuple(0 if period and number % period == period - 1 else window for number in range(layers))


def _rotaries(gguf: GgufFile, meta: Metadata, family: Family, head_dim: int, context: int) -> Rotaries:
    if family.partial_rotary:
        dims = meta.integer(".rope.dimension_count", 2, head_dim, default=head_dim)
        meta.require(dims % 2 == 0, ".rope.dimension_count", f"is odd: {dims}")
    else:
        meta.same(".rope.dimension_count", head_dim)
        dims = head_dim
    return rotaries_of(gguf, meta, dims, context, interleaved=family.interleaved, local_base=family.local_base)
