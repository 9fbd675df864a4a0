"""The rotary frequencies of a GGUF file: a base, a kind of scaling, and tables of factors that come as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import ModelFileError
from ..gguf import GgufFile, Tensor
from .architecture import Rotary
from .gguf_metadata import Metadata
from .rope_scaling import divided_frequencies, linear_frequencies, plain_frequencies, yarn_frequencies, yarn_magnitude

# Not weights: they end in the frequencies. rope_freqs divides always; of the others, short up to the original context, long beyond.
FACTOR_TENSORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
MAX_BASE = 1e12


@dataclass(frozen=True, slots=True)
class Rotaries:
    plain: Rotary
    local: Rotary | None
    long: Rotary | None
    original_context: int


def rotaries_of(gguf: GgufFile, meta: Metadata, dims: int, context: int, *, interleaved: bool, local_base: float | None) -> Rotaries:
    """`dims` inputs of every head are rotated. Raises ModelFileError naming the key or tensor at fault."""
    base = meta.number(".rope.freq_base", 1.0, MAX_BASE, default=10_000.0)
    frequencies = plain_frequencies(dims, base)
    kind = _kind_of_scaling(meta, gguf.tensors)
    factor = meta.number(".rope.scaling.factor", 0.01, 1e6, default=None if kind in ("linear", "yarn") else 1.0)
    magnitude = 1.0
    if kind in ("none", "linear"):
        meta.same(".rope.scaling.attn_factor", 1.0)
    if kind == "linear":
        frequencies = linear_frequencies(frequencies, factor)
    elif kind == "yarn":
        meta.require(base >= 2, ".rope.freq_base", f"must be at least 2 with the scaling 'yarn', found {base}")
        for key, neutral in ((".rope.scaling.yarn_ext_factor", 1.0), (".rope.scaling.yarn_log_multiplier", 0.0)):
            meta.same(key, neutral)
        fast = meta.number(".rope.scaling.yarn_beta_fast", 1e-3, 1e6, default=32.0)
        slow = meta.number(".rope.scaling.yarn_beta_slow", 1e-3, 1e6, default=1.0)
        original = meta.integer(".rope.scaling.original_context_length", 1, 1 << 24, default=context)
        frequencies = yarn_frequencies(dims, base, factor, original, beta_fast=fast, beta_slow=slow)
        attention_factor = meta.number(".rope.scaling.attn_factor", 1e-3, 1e3, default=1.0)
        magnitude = attention_factor * meta.number(".rope.scaling.yarn_attn_factor", 1e-3, 1e3, default=1.0) * yarn_magnitude(factor)
    if (factors := _factors(meta.file, gguf.tensors, "rope_freqs.weight", dims // 2)) is not None:
        frequencies = divided_frequencies(frequencies, factors)
    local = None
    if local_base is not None or ".rope.freq_base_swa" in meta:
        local_base = meta.number(".rope.freq_base_swa", 1.0, MAX_BASE, default=local_base)
        local = Rotary(plain_frequencies(dims, local_base), interleaved)
    if kind != "longrope":
        return Rotaries(Rotary(frequencies, interleaved, magnitude), local, None, 0)
    magnitude = meta.number(".rope.scaling.attn_factor", 1e-3, 1e3)
    original = meta.integer(".rope.scaling.original_context_length", 1, 1 << 24)
    long, short = (_needed(meta.file, gguf.tensors, f"rope_factors_{which}.weight", dims // 2) for which in ("long", "short"))
    return Rotaries(
        Rotary(divided_frequencies(frequencies, short), interleaved, magnitude),
        local,
        Rotary(divided_frequencies(frequencies, long), interleaved, magnitude),
        original,
    )


def _kind_of_scaling(meta: Metadata, tensors: Mapping[str, Tensor]) -> str:
    """The factors of LongRoPE say so themselves, and a factor without a kind is linear, as in files from before the key."""
    key = ".rope.scaling.type"
    long = "rope_factors_long.weight" in tensors or "rope_factors_short.weight" in tensors
    implied = "longrope" if long else "linear" if ".rope.scaling.factor" in meta else "none"
    kind = meta.get(key, str, implied)
    known = ("none", "linear", "yarn", "longrope")
    meta.require(kind in known, key, f"is {kind!r:.40}, which is not supported; supported: {', '.join(known)}")
    meta.require((kind == "longrope") == long or kind == "none", key, f"is {kind!r}, the tensors 'rope_factors_...' say {implied!r}")
    return "longrope" if long else kind


def _factors(file: str, tensors: Mapping[str, Tensor], name: str, pairs: int) -> tuple[float, ...] | None:
    tensor = tensors.get(name)
    if tensor is None:
        return None
    if tensor.type_name != "F32" or tensor.shape != (pairs,):
        raise ModelFileError(f"{file}: the tensor {name!r} is {tensor.type_name} {tensor.shape}, expected F32 ({pairs},)")
    factors = tensor.data.view(np.float32).astype(np.float64)
    if not (np.isfinite(factors).all() and (factors >= 1e-3).all() and (factors <= 1e6).all()):
        raise ModelFileError(f"{file}: the tensor {name!r} has factors outside 0.001 to 1000000")
    return tuple(factors.tolist())


def _needed(file: str, tensors: Mapping[str, Tensor], name: str, pairs: int) -> tuple[float, ...]:
    factors = _factors(file, tensors, name, pairs)
    if factors is None:
        raise ModelFileError(f"{file}: the tensor {name!r} is missing")
    return factors
