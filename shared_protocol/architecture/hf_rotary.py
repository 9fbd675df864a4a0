"""The rotary frequencies that a `config.json` describes."""

from __future__ import annotations

from .architecture import Rotary
from .gguf_rotary import MAX_BASE, Rotaries
from .hf_keys import Keys
from .rope_scaling import (
    divided_frequencies,
    linear_frequencies,
    llama3_frequencies,
    longrope_magnitude,
    plain_frequencies,
    yarn_frequencies,
    yarn_magnitude,
)

KINDS = ("default", "linear", "llama3", "yarn", "longrope")
LOCAL_BASE = 10_000.0


def folder_rotaries(keys: Keys, head_dim: int, context: int) -> Rotaries:
    """For weights that are not permuted: pair i is (i, n + i). Raises ModelFileError naming the key at fault.

    Layers with a window have a rotary embedding of their own where `rope_local_base_freq` or two sets of `rope_parameters` say so.
    """
    parameters = keys.inner("rope_parameters")
    if "full_attention" in parameters or "sliding_attention" in parameters:
        for kind in ("full_attention", "sliding_attention"):
            parameters.require(kind in parameters, kind, "is missing")
        local = _rotaries(keys, parameters.inner("sliding_attention"), head_dim, context).plain
        return _with_local(_rotaries(keys, parameters.inner("full_attention"), head_dim, context), local)
    scaling = parameters if parameters.values else keys.inner("rope_scaling")
    rotaries = _rotaries(keys, scaling, head_dim, context)
    if keys.values.get("model_type") != "gemma3_text":
        return rotaries
    base = keys.number("rope_local_base_freq", 1.0, MAX_BASE, default=LOCAL_BASE)
    return _with_local(rotaries, Rotary(plain_frequencies(head_dim, base), interleaved=False))


def _with_local(rotaries: Rotaries, local: Rotary) -> Rotaries:
    return Rotaries(rotaries.plain, local, rotaries.long, rotaries.original_context)


def _rotaries(keys: Keys, scaling: Keys, head_dim: int, context: int) -> Rotaries:
    where = scaling if "rope_theta" in scaling else keys
    base = where.number("rope_theta", 1.0, MAX_BASE, default=1e6 if keys.values.get("model_type") == "gemma3_text" else 10_000.0)
    dims = _rotated(keys, scaling, head_dim)
    plain = plain_frequencies(dims, base)
    name = "rope_type" if "rope_type" in scaling else "type"
    kind = scaling.get(name, str, "default")
    scaling.require(kind in KINDS, name, f"is {kind!r:.40}; supported: {', '.join(KINDS)}")
    if kind == "default":
        return Rotaries(Rotary(plain, interleaved=False), None, None, 0)
    if kind == "longrope":
        return _longrope(keys, scaling, plain, context)
    factor = scaling.number("factor", 0.01, 1e6)
    original = scaling.integer("original_max_position_embeddings", 1, 1 << 24, default=context)
    magnitude = 1.0
    if kind == "linear":
        frequencies = linear_frequencies(plain, factor)
    elif kind == "llama3":
        low, high = scaling.number("low_freq_factor", 1e-3, 1e6), scaling.number("high_freq_factor", 1e-3, 1e6)
        scaling.require(low < high, "low_freq_factor", f"{low} must be below high_freq_factor, {high}")
        frequencies = llama3_frequencies(plain, factor, low_freq_factor=low, high_freq_factor=high, original_context=original)
    else:
        for key in ("mscale", "mscale_all_dim"):
            scaling.require(key not in scaling, key, "is not supported")
        scaling.require(scaling.get("truncate", bool, True), "truncate", "false is not supported")
        scaling.require(base >= 2, "rope_theta", f"must be at least 2 with yarn, found {base}")
        fast = scaling.number("beta_fast", 1e-3, 1e6, default=32.0)
        slow = scaling.number("beta_slow", 1e-3, 1e6, default=1.0)
        frequencies = yarn_frequencies(dims, base, factor, original, beta_fast=fast, beta_slow=slow)
        magnitude = scaling.number("attention_factor", 1e-3, 1e3, default=yarn_magnitude(factor))
    return Rotaries(Rotary(frequencies, interleaved=False, magnitude=magnitude), None, None, 0)


def _rotated(keys: Keys, scaling: Keys, head_dim: int) -> int:
    """Inputs of a head that are rotated."""
    where = scaling if "partial_rotary_factor" in scaling else keys
    share = where.number("partial_rotary_factor", 1e-3, 1.0, default=1.0)
    dims = int(head_dim * share)
    where.require(dims >= 2 and dims % 2 == 0, "partial_rotary_factor", f"{share} rotates {dims} of {head_dim} inputs, which are no pairs")
    return dims


def _longrope(keys: Keys, scaling: Keys, plain: tuple[float, ...], context: int) -> Rotaries:
    where = keys if "original_max_position_embeddings" in keys else scaling
    original = where.integer("original_max_position_embeddings", 2, 1 << 24)
    magnitude = scaling.number("attention_factor", 1e-3, 1e3, default=longrope_magnitude(context, original))
    short, long = (
        Rotary(divided_frequencies(plain, scaling.numbers(name, len(plain), 1e-3, 1e6)), interleaved=False, magnitude=magnitude)
        for name in ("short_factor", "long_factor")
    )
    return Rotaries(short, None, long, original)
