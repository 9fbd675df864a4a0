"""What kind of network a `config.json` describes.

Keys and their defaults: the configuration classes of the transformers library, in both of its spellings for rotary embeddings
(`rope_theta` with `rope_scaling`, and `rope_parameters`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..errors import ModelFileError
from .architecture import Architecture
from .hf_keys import Keys
from .hf_rotary import folder_rotaries


@dataclass(frozen=True, slots=True)
class HfFamily:
    """What all folders of one `model_type` share, and no key says."""

    family: str  # as GGUF names it
    activation: Literal["silu", "gelu_tanh"] = "silu"
    qkv_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False
    tied: bool = False  # when no key says
    gemma: bool = False  # embedding scaled by sqrt(hidden_size), norms around 0 instead of 1, a scale of its own for scores
    windowed: Literal["none", "all", "upper", "even", "period"] = "none"  # the layers that have a window, when `layer_types` does not say
    window: int = 4096  # when the key is left out; null is none
    period: int = 0  # of so many layers all but the last have the window
    softcaps: tuple[float, float] = (0.0, 0.0)  # of scores and of logits, when no key says


FAMILIES = {
    "llama": HfFamily("llama"),
    "mistral": HfFamily("llama", windowed="all"),
    "qwen2": HfFamily("qwen2", qkv_bias=True, windowed="upper"),
    "qwen3": HfFamily("qwen3", qk_norm=True, windowed="upper"),
    "gemma2": HfFamily("gemma2", "gelu_tanh", post_norms=True, tied=True, gemma=True, windowed="even", softcaps=(50.0, 30.0)),
    "gemma3_text": HfFamily("gemma3", "gelu_tanh", qk_norm=True, post_norms=True, tied=True, gemma=True, windowed="period", period=6),
    "phi3": HfFamily("phi3", windowed="all", window=0),
}
ACTIVATIONS: dict[str, Literal["silu", "gelu_tanh"]] = {"silu": "silu", "gelu_pytorch_tanh": "gelu_tanh"}

# Keys that change what is computed in ways that no executor here knows, and the values that change nothing.
NEUTRAL: dict[str, tuple[object, ...]] = {
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "quantization_config": (None,),
    "use_bidirectional_attention": (None, False),
    "use_mrope": (None, False),
    "num_local_experts": (None, 0),
    "num_experts": (None, 0),
}


def family_of(keys: Keys) -> HfFamily:
    """Raises ModelFileError for a model type that is not supported."""
    name = keys.get("model_type", str)
    if name not in FAMILIES:
        raise ModelFileError(f"{keys.file}: the model_type {name[:40]!r} is not supported; supported: {', '.join(FAMILIES)}")
    return FAMILIES[name]


def architecture_of_config(keys: Keys) -> Architecture:
    """Read and check every size. Raises ModelFileError naming the key at fault, and what is supported."""
    family = family_of(keys)
    for key, values in NEUTRAL.items():
        if key == "attention_bias" and family.qkv_bias:
            continue
        found = keys.values.get(key, values[0])
        keys.require(any(found is value or found == value for value in values), key, f"is {found!r:.60}, only {values[0]} is supported")
    heads = keys.integer("num_attention_heads", 1, 1024)
    hidden = keys.integer("hidden_size", 1, 1 << 17)
    kv_heads = keys.integer("num_key_value_heads", 1, heads, default=heads)
    keys.require(heads % kv_heads == 0, "num_key_value_heads", f"{kv_heads} does not divide the {heads} heads")
    if "head_dim" not in keys:
        keys.require(hidden % heads == 0, "hidden_size", f"{hidden} is no multiple of the {heads} heads")
    head_dim = keys.integer("head_dim", 2, 1024, default=256 if family.gemma else hidden // heads)
    keys.require(head_dim % 2 == 0, "head_dim", f"heads of {head_dim} have no rotary pairs")
    layers = keys.integer("num_hidden_layers", 1, 1024)
    context = keys.integer("max_position_embeddings", 1, 1 << 24)
    rotaries = folder_rotaries(keys, head_dim, context)
    scaled_by = keys.number("query_pre_attn_scalar", 1e-3, 1e6, default=256.0) if family.gemma else head_dim
    attention_cap, logit_cap = family.softcaps
    return Architecture(
        family=family.family,
        num_layers=layers,
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        ffn_size=keys.integer("intermediate_size", 1, 1 << 20),
        vocab_size=keys.integer("vocab_size", 1, 1 << 24),
        context_length=context,
        norm_eps=keys.number("rms_norm_eps", 1e-12, 0.1, default=1e-6),
        rotary=rotaries.plain,
        tied_embeddings=keys.get("tie_word_embeddings", bool, family.tied),
        attention_scale=1 / math.sqrt(scaled_by),
        windows=_windows(keys, family, layers, context),
        local_rotary=rotaries.local,
        long_rotary=rotaries.long,
        original_context=rotaries.original_context,
        activation=_activation(keys, family),
        qkv_bias=family.qkv_bias,
        qk_norm=family.qk_norm,
        post_norms=family.post_norms,
        embedding_scale=math.sqrt(hidden) if family.gemma else 1.0,
        attention_softcap=_cap(keys, "attn_logit_softcapping", attention_cap) if family.gemma else 0.0,
        logit_softcap=_cap(keys, "final_logit_softcapping", logit_cap) if family.gemma else 0.0,
    )


def _activation(keys: Keys, family: HfFamily) -> Literal["silu", "gelu_tanh"]:
    key = "hidden_activation" if "hidden_activation" in keys else "hidden_act"
    if key not in keys:
        return family.activation
    name = keys.get(key, str)
    keys.require(name in ACTIVATIONS, key, f"is {name!r:.40}; supported: {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def _cap(keys: Keys, key: str, default: float) -> float:
    """A cap that is null is none; one that is left out is the family's."""
    return 0.0 if keys.values.get(key, default) is None else keys.number(key, 0.0, 1e6, default=default)


def _windows(keys: Keys, family: HfFamily, layers: int, context: int) -> tuple[int, ...]:
    """Per layer, or () when no query ever loses sight of a position."""
    if family.windowed == "none" or (family.windowed == "upper" and not keys.get("use_sliding_window", bool, False)):
        return ()
    window = 0 if keys.values.get("sliding_window", family.window) is None else keys.integer("sliding_window", 0, 1 << 30, family.window)
    turns_apart = family.windowed == "period"  # the layers with a window have frequencies of their own, however wide it is
    keys.require(window > 0 or not turns_apart, "sliding_window", "must be at least 1")
    if window == 0 or (window >= context and not turns_apart):
        return ()
    return tuple(window if local else 0 for local in _local_layers(keys, family, layers))


def _local_layers(keys: Keys, family: HfFamily, layers: int) -> list[bool]:
    """Whether each layer has the window."""
    if "layer_types" in keys:
        types = keys.get("layer_types", list)
        known = len(types) == layers and all(kind in ("full_attention", "sliding_attention") for kind in types)
        keys.require(known, "layer_types", f"must name full_attention or sliding_attention for each of the {layers} layers")
        return [kind == "sliding_attention" for kind in types]
    match family.windowed:
        case "upper":
            first = keys.integer("max_window_layers", 0, 1024, default=28)
            return [number >= first for number in range(layers)]
        case "even":
            return [number % 2 == 0 for number in range(layers)]
        case "period":
            key = "sliding_window_pattern" if "sliding_window_pattern" in keys else "_sliding_window_pattern"
            period = keys.integer(key, 1, 1024, default=family.period)
            return [(number + 1) % period != 0 for number in range(layers)]
    return [True] * layers
