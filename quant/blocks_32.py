"""Blocks of 32 weights with one scale.

Q4_0  | d f16         | codes 16 bytes |                x = d * (q - 8)      low nibbles are elements 0-15, high ones 16-31
Q4_1  | d f16 | m f16 | codes 16 bytes |                x = d * q + m
Q5_0  | d f16         | fifth bits 4 bytes | codes 16 | x = d * (q - 16)     bit i of the 32 belongs to element i
Q5_1  | d f16 | m f16 | fifth bits 4 bytes | codes 16 | x = d * q + m
Q8_0  | d f16         | 32 x int8 |                     x = d * q
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .block import Blocks, Codes, Values, bytes_of_half, farthest, half, inverse, join_nibbles, nibbles

HALF = np.float32(0.5)


def unpack_q4_0(blocks: Blocks) -> Values:
    return (_four_bits(blocks, 2).view(np.int8) - np.int8(8)).astype(np.float32) * half(blocks, 0)


def unpack_q4_1(blocks: Blocks) -> Values:
    return _four_bits(blocks, 4).astype(np.float32) * half(blocks, 0) + half(blocks, 2)


def unpack_q5_0(blocks: Blocks) -> Values:
    return (_five_bits(blocks, 2).view(np.int8) - np.int8(16)).astype(np.float32) * half(blocks, 0)


def unpack_q5_1(blocks: Blocks) -> Values:
    return _five_bits(blocks, 4).astype(np.float32) * half(blocks, 0) + half(blocks, 2)


def unpack_q8_0(blocks: Blocks) -> Values:
    return blocks[:, 2:].view(np.int8).astype(np.float32) * half(blocks, 0)


def pack_q4_0(values: Values) -> Blocks:
    scale, codes = _signed_codes(values, 8)
    return np.concatenate([bytes_of_half(scale), _low_bits(codes)], axis=1)


def pack_q4_1(values: Values) -> Blocks:
    scale, low, codes = _ranged_codes(values, 15)
    return np.concatenate([bytes_of_half(scale), bytes_of_half(low), _low_bits(codes)], axis=1)


def pack_q5_0(values: Values) -> Blocks:
    scale, codes = _signed_codes(values, 16)
    return np.concatenate([bytes_of_half(scale), _fifth_bits(codes), _low_bits(codes)], axis=1)


def pack_q5_1(values: Values) -> Blocks:
    scale, low, codes = _ranged_codes(values, 31)
    return np.concatenate([bytes_of_half(scale), bytes_of_half(low), _fifth_bits(codes), _low_bits(codes)], axis=1)


def pack_q8_0(values: Values) -> Blocks:
    scale = np.abs(values).max(axis=1, keepdims=True) / np.float32(127)
    scaled = values * inverse(scale)
    codes = np.trunc(scaled + np.copysign(HALF, scaled)).astype(np.int8)  # halves away from zero
    return np.concatenate([bytes_of_half(scale), codes.view(np.uint8)], axis=1)


def _signed_codes(values: Values, middle: int) -> tuple[Values, Codes]:
    """Scale and codes 0 .. 2 * middle - 1 around `middle`: the value farthest from 0 becomes code 0."""
    scale = farthest(values) / np.float32(-middle)
    codes = values * inverse(scale) + (np.float32(middle) + HALF)
    return scale, np.minimum(codes, 2 * middle - 1).astype(np.uint8)


def _ranged_codes(values: Values, most: int) -> tuple[Values, Values, Codes]:
    """Scale, lowest value and codes 0 .. most between the lowest and the highest value."""
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    scale = (high - low) / np.float32(most)
    return scale, low, np.minimum((values - low) * inverse(scale) + HALF, most).astype(np.uint8)


def _four_bits(blocks: Blocks, at: int) -> Codes:
    return nibbles(blocks[:, at : at + 16]).reshape(-1, 32)


def _five_bits(blocks: Blocks, at: int) -> Codes:
    fifth: NDArray[np.uint8] = np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little")
    codes: Codes = _four_bits(blocks, at + 4) | fifth << 4
    return codes


def _low_bits(codes: Codes) -> Blocks:
    return join_nibbles((codes & 15).reshape(-1, 2, 16))


def _fifth_bits(codes: Codes) -> Blocks:
    return np.packbits(codes >> 4, axis=1, bitorder="little")
