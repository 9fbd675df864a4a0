"""K blocks: 256 weights in 8 sub-blocks of 32, or 16 of 16, whose own scales are small integers times one f16.

Q2_K  | scale + min, 4 bits each, 16 bytes | codes 64 |                          d f16 | dmin f16 |   x = (d * s) * q - dmin * m
Q3_K  | third bits 32 | codes 64 | scales 6 bits, 12 bytes |                      d f16 |              x = (d * (s - 32)) * (q - 4)
Q4_K  | d f16 | dmin f16 | scale + min, 6 bits each, 12 bytes | codes 128 |                            x = (d * s) * q - dmin * m
Q5_K  | d f16 | dmin f16 | scale + min, 6 bits each, 12 bytes | fifth bits 32 | codes 128 |            as Q4_K
Q6_K  | low nibbles 128 | fifth and sixth bits 64 | scales 16 x int8 |            d f16 |              x = (d * s) * (q - 32)

Codes of 2 bits: 32 bytes hold 128 weights, bits 2j and 2j + 1 of byte l are weight 32j + l. Codes of 4 bits: 32 bytes hold 64 weights,
the low nibbles first; in Q6_K 64 bytes hold 128, the low nibbles first. Packing here is plain: each sub-block's range is rounded to
its integers, then every weight to its nearest code; the reference searches longer for scales with a smaller error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .block import Blocks, Codes, Values, bytes_of_half, farthest, half, inverse, join_nibbles, nibbles

SHIFTS_2 = np.array([0, 2, 4, 6], np.uint8)[:, None]
SHIFTS_1 = np.arange(8, dtype=np.uint8)[:, None]


def unpack_q2_k(blocks: Blocks) -> Values:
    scales, codes = blocks[:, :16], _two_bits(blocks[:, 16:80]).reshape(-1, 16, 16)
    return _with_minimum(codes, scales & 15, scales >> 4, half(blocks, 80), half(blocks, 82))


def unpack_q3_k(blocks: Blocks) -> Values:
    third = (blocks[:, None, :32] >> SHIFTS_1 & 1).reshape(-1, 2, 4, 32)
    codes = (_two_bits(blocks[:, 32:96]) | third << 2).reshape(-1, 16, 16)
    return _signed(codes, 4, _six_bits(blocks[:, 96:108]).view(np.int8) - np.int8(32), half(blocks, 108))


def unpack_q4_k(blocks: Blocks) -> Values:
    codes = nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return _with_minimum(codes, *_scale_and_minimum(blocks[:, 4:16]), half(blocks, 0), half(blocks, 2))


def unpack_q5_k(blocks: Blocks) -> Values:
    low = nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    fifth = blocks[:, None, 16:48] >> SHIFTS_1 & 1
    return _with_minimum(low | fifth << 4, *_scale_and_minimum(blocks[:, 4:16]), half(blocks, 0), half(blocks, 2))


def unpack_q6_k(blocks: Blocks) -> Values:
    low = nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    codes = (low | _two_bits(blocks[:, 128:192]) << 4).reshape(-1, 16, 16)
    return _signed(codes, 32, blocks[:, 192:208].view(np.int8), half(blocks, 208))


def pack_q2_k(values: Values) -> Blocks:
    d, dmin, scales, minima, codes = _ranged(values.reshape(-1, 16, 16), most=3, most_scale=15)
    return np.concatenate([scales | minima << 4, _join_two_bits(codes), bytes_of_half(d), bytes_of_half(dmin)], axis=1)


def pack_q3_k(values: Values) -> Blocks:
    d, scales, codes = _around_zero(values.reshape(-1, 16, 16), middle=4, most_scale=32)
    third = np.packbits((codes >> 2).reshape(-1, 8, 32), axis=1, bitorder="little").reshape(-1, 32)
    return np.concatenate([third, _join_two_bits(codes & 3), _join_six_bits((scales + 32).view(np.uint8)), bytes_of_half(d)], axis=1)


def pack_q4_k(values: Values) -> Blocks:
    d, dmin, scales, minima, codes = _ranged(values.reshape(-1, 8, 32), most=15, most_scale=63)
    low = join_nibbles(codes.reshape(-1, 4, 2, 32)).reshape(-1, 128)
    return np.concatenate([bytes_of_half(d), bytes_of_half(dmin), _join_scale_and_minimum(scales, minima), low], axis=1)


def pack_q5_k(values: Values) -> Blocks:
    d, dmin, scales, minima, codes = _ranged(values.reshape(-1, 8, 32), most=31, most_scale=63)
    fifth = np.packbits(codes >> 4, axis=1, bitorder="little").reshape(-1, 32)
    low = join_nibbles((codes & 15).reshape(-1, 4, 2, 32)).reshape(-1, 128)
    return np.concatenate([bytes_of_half(d), bytes_of_half(dmin), _join_scale_and_minimum(scales, minima), fifth, low], axis=1)


def pack_q6_k(values: Values) -> Blocks:
    d, scales, codes = _around_zero(values.reshape(-1, 16, 16), middle=32, most_scale=128)
    low = join_nibbles((codes & 15).reshape(-1, 2, 2, 64)).reshape(-1, 128)
    return np.concatenate([low, _join_two_bits(codes >> 4), scales.view(np.uint8), bytes_of_half(d)], axis=1)


def _with_minimum(codes: Codes, scales: Codes, minima: Codes, d: Values, dmin: Values) -> Values:
    """codes [blocks, sub-blocks, n], scales and minima [blocks, sub-blocks]."""
    values = codes.astype(np.float32) * (d * scales.astype(np.float32))[..., None] - (dmin * minima.astype(np.float32))[..., None]
    return values.reshape(len(codes), 256)


def _signed(codes: Codes, middle: int, scales: NDArray[np.int8], d: Values) -> Values:
    signed = (codes.view(np.int8) - np.int8(middle)).astype(np.float32)
    return (signed * (d * scales.astype(np.float32))[..., None]).reshape(len(codes), 256)


def _two_bits(packed: Codes) -> Codes:
    """[blocks, 64] -> [blocks, 2, 4, 32]."""
    codes: Codes = packed.reshape(-1, 2, 1, 32) >> SHIFTS_2 & 3
    return codes


def _join_two_bits(codes: Codes) -> Codes:
    packed: Codes = np.bitwise_or.reduce(codes.reshape(-1, 2, 4, 32) << SHIFTS_2, axis=2)
    return packed.reshape(-1, 64)


def _scale_and_minimum(packed: Codes) -> tuple[Codes, Codes]:
    """12 bytes -> 8 scales and 8 minima of 6 bits.

    byte i, i < 4       scale i, and in its top 2 bits the upper 2 of scale 4 + i
    byte 4 + i          minimum i, and the upper 2 of minimum 4 + i
    byte 8 + i          the lower 4 bits of scale 4 + i, then of minimum 4 + i
    """
    first, second, low = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, low & 15 | first >> 6 << 4], axis=1)
    return scales, np.concatenate([second & 63, low >> 4 | second >> 6 << 4], axis=1)


def _join_scale_and_minimum(scales: Codes, minima: Codes) -> Codes:
    first = scales[:, :4] | scales[:, 4:] >> 4 << 6
    second = minima[:, :4] | minima[:, 4:] >> 4 << 6
    return np.concatenate([first, second, scales[:, 4:] & 15 | (minima[:, 4:] & 15) << 4], axis=1)


def _six_bits(packed: Codes) -> Codes:
    """12 bytes -> 16 numbers of 6 bits: 8 bytes with the lower 4 bits of i and 8 + i, 4 bytes whose bits 2j hold the upper 2 of 4j + i."""
    low = nibbles(packed[:, :8]).reshape(-1, 16)
    numbers: Codes = low | (packed[:, None, 8:] >> SHIFTS_2 & 3).reshape(-1, 16) << 4
    return numbers


def _join_six_bits(numbers: Codes) -> Codes:
    high = np.bitwise_or.reduce((numbers >> 4).reshape(-1, 4, 4) << SHIFTS_2, axis=1)
    return np.concatenate([join_nibbles((numbers & 15).reshape(-1, 2, 8)), high], axis=1)


def _ranged(values: Values, most: int, most_scale: int) -> tuple[Values, Values, Codes, Codes, Codes]:
    """d, dmin [blocks, 1], scales, minima [blocks, sub-blocks] and codes of values [blocks, sub-blocks, n], from 0 or below upward."""
    depth = -np.minimum(values.min(axis=2), np.float32(0))
    scale = (np.maximum(values.max(axis=2), np.float32(0)) + depth) / np.float32(most)
    d, scales = _rounded(scale.max(axis=1, keepdims=True) / np.float32(most_scale), scale, 0, most_scale)
    dmin, minima = _rounded(depth.max(axis=1, keepdims=True) / np.float32(most_scale), depth, 0, most_scale)
    lifted = values + (dmin * minima)[..., None]
    return d, dmin, scales.astype(np.uint8), minima.astype(np.uint8), _nearest(lifted * inverse(d * scales)[..., None], 0, most, np.uint8)


def _around_zero(values: Values, middle: int, most_scale: int) -> tuple[Values, NDArray[np.int8], Codes]:
    """d [blocks, 1], signed scales and codes around `middle`, so that the value farthest from 0 gets the code farthest from it."""
    scale = farthest(values)[..., 0] / np.float32(-middle)
    d, scales = _rounded(farthest(scale) / np.float32(-most_scale), scale, -most_scale, most_scale - 1)
    codes = _nearest(values * inverse(d * scales)[..., None], -middle, middle - 1, np.int8) + np.int8(middle)
    return d, scales.astype(np.int8), codes.view(np.uint8)


def _rounded(unit: Values, parts: Values, low: int, high: int) -> tuple[Values, Values]:
    """The unit as an f16 can hold it, and the parts in whole units."""
    unit = unit.astype(np.float16).astype(np.float32)
    return unit, np.clip(np.rint(parts * inverse(unit)), low, high)


def _nearest(scaled: Values, low: int, high: int, dtype: type[Any]) -> NDArray[Any]:
    return np.clip(np.rint(scaled), low, high).astype(dtype)
