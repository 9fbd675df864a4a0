"""Blocks of 4-bit codes into a fixed table of 16 levels, denser around 0.

IQ4_NL  | d f16 | codes 16 bytes |                          32 weights    x = d * LEVELS[q], low nibbles are elements 0-15
IQ4_XS  | d f16 | upper scale bits u16 | lower 4 bytes | codes 128 |  256 weights in 8 sub-blocks of 32    x = (d * (s - 32)) * LEVELS[q]
"""

from __future__ import annotations

import numpy as np

from .block import Blocks, Codes, Values, bytes_of_half, farthest, half, inverse, join_nibbles, nibbles

LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
_BETWEEN = (LEVELS[1:] + LEVELS[:-1]) / 2
_HIGH_SHIFTS = np.arange(0, 16, 2, dtype=np.uint16)


def unpack_iq4_nl(blocks: Blocks) -> Values:
    levels: Values = LEVELS[nibbles(blocks[:, 2:])].reshape(-1, 32)
    return levels * half(blocks, 0)


def unpack_iq4_xs(blocks: Blocks) -> Values:
    low = np.stack([blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4], axis=2).reshape(-1, 8)
    high = np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> _HIGH_SHIFTS & 3
    scales = half(blocks, 0) * ((low | high.astype(np.uint8) << 4).view(np.int8) - np.int8(32)).astype(np.float32)
    levels: Values = LEVELS[nibbles(blocks[:, 8:].reshape(-1, 8, 16))].reshape(-1, 8, 32)
    levels *= scales[..., None]
    return levels.reshape(-1, 256)


def pack_iq4_nl(values: Values) -> Blocks:
    scale = (farthest(values) / LEVELS[0]).astype(np.float16).astype(np.float32)
    return np.concatenate([bytes_of_half(scale), join_nibbles(_codes(values * inverse(scale)).reshape(-1, 2, 16))], axis=1)


def pack_iq4_xs(values: Values) -> Blocks:
    parts = values.reshape(-1, 8, 32)
    scale = farthest(parts)[..., 0] / LEVELS[0]
    d = (farthest(scale) / np.float32(-32)).astype(np.float16).astype(np.float32)
    whole = np.clip(np.rint(scale * inverse(d)), -32, 31)
    codes = _codes(parts * inverse(d * whole)[..., None])
    numbers = (whole + 32).astype(np.uint8)
    high = np.bitwise_or.reduce((numbers >> 4).astype("<u2") << _HIGH_SHIFTS, axis=1, keepdims=True)
    low = (numbers[:, 0::2] & 15) | (numbers[:, 1::2] & 15) << 4
    packed = join_nibbles(codes.reshape(-1, 8, 2, 16)).reshape(-1, 128)
    return np.concatenate([bytes_of_half(d), high.view(np.uint8), low, packed], axis=1)


def _codes(scaled: Values) -> Codes:
    """The nearest level of each."""
    return np.searchsorted(_BETWEEN, scaled).astype(np.uint8)
