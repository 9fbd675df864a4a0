"""What the NumPy reference computes between its matrices, for one row: rotation, attention, caps, activations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def rotate(heads: Floats, cos_sin: Floats, interleaved: bool) -> Floats:
    """Turn the pairs of every head [heads, head_dim] by one position's (cos, sin) [pairs, 2]; what has no pair stays.

    interleaved      pair i is (2i, 2i + 1)
    else             pair i is (i, pairs + i)
    """
    pairs = len(cos_sin)
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved else (slice(pairs), slice(pairs, 2 * pairs))
    cosine, sine = cos_sin[:, 0], cos_sin[:, 1]
    turned = heads.copy()
    turned[:, first] = heads[:, first] * cosine - heads[:, second] * sine
    turned[:, second] = heads[:, second] * cosine + heads[:, first] * sine
    return turned


def attend(query: Floats, keys: Floats, values: Floats, scale: float, cap: float) -> Floats:
    """query [heads, head_dim], keys and values [positions, KV heads, head_dim] -> [heads * head_dim]. Scores are scaled, then capped."""
    kv_heads, dim = keys.shape[1:]
    shared = query.reshape(kv_heads, -1, dim) * np.float32(scale)
    scores = soft_cap(shared @ np.ascontiguousarray(keys.transpose(1, 2, 0)), cap)  # [KV heads, shared, positions]
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    result: Floats = weights @ np.ascontiguousarray(values.transpose(1, 0, 2))
    return result.reshape(-1)


def soft_cap(x: Floats, cap: float) -> Floats:
    """cap * tanh(x / cap); 0 is no cap."""
    if cap == 0:
        return x
    capped: Floats = np.tanh(x / np.float32(cap)) * np.float32(cap)
    return capped


def silu(x: Floats) -> Floats:
    result: Floats = x / (1 + np.exp(-x))
    return result


def gelu_tanh(x: Floats) -> Floats:
    """GELU in its tanh form. Source: Hendrycks and Gimpel 2016."""
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    result: Floats = np.float32(0.5) * x * (1 + np.tanh(inner))
    return result


ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType({"silu": silu, "gelu_tanh": gelu_tanh})
