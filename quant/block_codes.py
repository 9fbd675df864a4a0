"""GGUF blocks taken apart into what they hold: codes, scales per group of 32 weights, and what is shared by a whole block.

Nothing is computed here, bits only change places; `weights_of` then does the arithmetic in the reference's order. The layouts of the
blocks stand in blocks_32.py, blocks_k.py and blocks_iq4.py; what the fields mean, in the table of npu_backends/cpu/kernels/panels.h.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .block import Blocks, Codes, Values, nibbles
from .blocks_iq4 import LEVELS

_SHIFTS_2 = np.array([0, 2, 4, 6], np.uint8)[:, None]
_SHIFTS_1 = np.arange(8, dtype=np.uint8)[:, None]
OFFSETS: Mapping[str, int] = MappingProxyType({"Q4_0": 8, "Q5_0": 16, "Q6_K": 32, "Q3_K": 4})  # taken off a code


@dataclass(frozen=True, slots=True)
class Parts:
    """The content of blocks of n groups of 32."""

    codes: Codes  # uint8 [blocks, n, 32]
    fields: Codes  # uint8 [blocks, n, bytes]: scales and minima of a group
    header: Codes  # uint8 [blocks, bytes]: the f16 of a block of 256


def parts_of(type_name: str, blocks: Blocks) -> Parts:
    """Take apart blocks uint8 [blocks, bytes of a block]."""
    return _SPLITS[type_name](blocks)


def weights_of(type_name: str, parts: Parts) -> Values:
    """The float32 weights of parts, [blocks, weights of a block]; products are exact in float32, a minimum is added with one rounding."""
    codes, fields, header = parts.codes, np.ascontiguousarray(parts.fields), np.ascontiguousarray(parts.header)
    halves = header.view(np.float16).astype(np.float32)[:, None, :, None]  # [blocks, 1, f16, 1]
    levels = LEVELS[codes & 15] if type_name.startswith("IQ4") else codes.astype(np.float32) - np.float32(OFFSETS.get(type_name, 0))
    match type_name:
        case "Q8_0":
            values = codes.view(np.int8).astype(np.float32) * fields.view(np.float16).astype(np.float32)
        case "Q4_1" | "Q5_1":
            scales = fields.view(np.float16).astype(np.float32)
            values = levels * scales[..., :1] + scales[..., 1:]
        case "Q4_0" | "Q5_0" | "IQ4_NL":
            values = levels * fields.view(np.float16).astype(np.float32)
        case "IQ4_XS":
            values = levels * (halves[:, :, 0] * fields.view(np.int8).astype(np.float32))
        case "Q4_K" | "Q5_K":
            small = fields.astype(np.float32)
            values = levels * (halves[:, :, 0] * small[..., :1]) - halves[:, :, 1] * small[..., 1:]
        case "Q6_K" | "Q3_K":
            values = levels.reshape(*fields.shape, 16) * (halves[:, :, 0] * fields.view(np.int8).astype(np.float32))[..., None]
        case "Q2_K":
            scales, minima = halves[:, :, 0] * (fields & 15).astype(np.float32), halves[:, :, 1] * (fields >> 4).astype(np.float32)
            values = levels.reshape(*fields.shape, 16) * scales[..., None] - minima[..., None]
    return values.reshape(len(codes), -1)


def _small(scales: int, fifth: bool = False) -> Callable[[Blocks], Parts]:
    """Blocks of 32: `scales` bytes of f16, then perhaps 4 bytes of fifth bits, then nibbles."""

    def split(blocks: Blocks) -> Parts:
        codes = nibbles(blocks[:, -16:]).reshape(-1, 1, 32)
        if fifth:
            codes = codes | np.unpackbits(blocks[:, scales : scales + 4], axis=1, bitorder="little").reshape(-1, 1, 32) << 4
        return Parts(codes, blocks[:, None, :scales], blocks[:, :0])

    return split


def _q8_0(blocks: Blocks) -> Parts:
    return Parts(blocks[:, None, 2:], blocks[:, None, :2], blocks[:, :0])


def _q2_k(blocks: Blocks) -> Parts:
    return Parts(_two_bits(blocks[:, 16:80]), blocks[:, :16].reshape(-1, 8, 2), blocks[:, 80:])


def _q3_k(blocks: Blocks) -> Parts:
    third = blocks[:, None, :32] >> _SHIFTS_1 & 1
    low, high = nibbles(blocks[:, 96:104]).reshape(-1, 16), (blocks[:, None, 104:108] >> _SHIFTS_2 & 3).reshape(-1, 16)
    scales = ((low | high << 4) - np.uint8(32)).reshape(-1, 8, 2)  # wraps around to the bits of int8
    return Parts(_two_bits(blocks[:, 32:96]) | third << 2, scales, blocks[:, 108:])


def _q4_k(blocks: Blocks) -> Parts:
    return Parts(nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32), _scales_k(blocks[:, 4:16]), blocks[:, :4])


def _q5_k(blocks: Blocks) -> Parts:
    low, fifth = nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32), blocks[:, None, 16:48] >> _SHIFTS_1 & 1
    return Parts(low | fifth << 4, _scales_k(blocks[:, 4:16]), blocks[:, :4])


def _q6_k(blocks: Blocks) -> Parts:
    low = nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 8, 32)
    return Parts(low | _two_bits(blocks[:, 128:192]) << 4, blocks[:, 192:208].reshape(-1, 8, 2), blocks[:, 208:])


def _iq4_xs(blocks: Blocks) -> Parts:
    low = np.stack([blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4], axis=2).reshape(-1, 8)
    high = (blocks[:, 2:4, None] >> np.array([0, 2, 4, 6], np.uint8) & 3).reshape(-1, 8)
    scales = (low | high << 4) - np.uint8(32)
    return Parts(nibbles(blocks[:, 8:].reshape(-1, 8, 16)).reshape(-1, 8, 32), scales[..., None], blocks[:, :2])


def _two_bits(packed: Codes) -> Codes:
    return (packed.reshape(-1, 2, 1, 32) >> _SHIFTS_2 & 3).reshape(-1, 8, 32)


def _scales_k(packed: Codes) -> NDArray[Any]:
    """12 bytes -> (scale, minimum) of 8 groups, uint8 [blocks, 8, 2]; the picture is in blocks_k.py."""
    first, second, low = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, low & 15 | first >> 6 << 4], axis=1)
    minima = np.concatenate([second & 63, low >> 4 | second >> 6 << 4], axis=1)
    return np.stack([scales, minima], axis=2)


_SPLITS: Mapping[str, Callable[[Blocks], Parts]] = MappingProxyType(
    {
        "Q4_0": _small(2),
        "Q4_1": _small(4),
        "Q5_0": _small(2, fifth=True),
        "Q5_1": _small(4, fifth=True),
        "Q8_0": _q8_0,
        "Q2_K": _q2_k,
        "Q3_K": _q3_k,
        "Q4_K": _q4_k,
        "Q5_K": _q5_k,
        "Q6_K": _q6_k,
        "IQ4_NL": _small(2),
        "IQ4_XS": _iq4_xs,
    }
)
