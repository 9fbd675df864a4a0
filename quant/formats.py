"""The number formats of stored tensors: one table, byte-exact with GGUF.

Q4_1  | d f16 | m f16 | 16 bytes: low nibbles are elements 0-15, high nibbles 16-31 |   x = d * q + m,  q in 0..15
Q8_0  | d f16 | 32 x int8 |                                                             x = d * q
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.errors import ModelFileError
from ..shared_protocol.gguf import GGML_TYPES, Tensor

Blocks = NDArray[np.uint8]  # [blocks, bytes of a block]
Values = NDArray[np.float32]  # [blocks, elements of a block]


@dataclass(frozen=True, slots=True)
class Format:
    """One format: `unpack` is exact; `pack` rounds to nearest as the public reference does."""

    name: str
    block: int  # elements
    block_bytes: int
    unpack: Callable[[Blocks], Values]
    pack: Callable[[Values], Blocks]


def dequantize(tensor: Tensor) -> NDArray[np.float32]:
    """Return the tensor's values, float32 [shape]. Raises ModelFileError for a type that is not in FORMATS."""
    chosen = FORMATS.get(tensor.type_name)
    if chosen is None:
        raise ModelFileError(f"the tensor {tensor.name!r} has the type {tensor.type_name}; supported: {', '.join(FORMATS)}")
    return chosen.unpack(tensor.data.reshape(-1, chosen.block_bytes)).reshape(tensor.shape)


def quantize(values: NDArray[np.float32], type_name: str) -> NDArray[np.uint8]:
    """Pack float32 values, whose last axis is a multiple of the block, into uint8 [bytes]."""
    chosen = FORMATS[type_name]
    assert values.shape[-1] % chosen.block == 0
    return chosen.pack(values.astype(np.float32).reshape(-1, chosen.block)).reshape(-1)


def _half(blocks: Blocks, at: int) -> NDArray[np.float32]:
    """The f16 at byte `at` of every block, as float32 [blocks, 1]."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16).astype(np.float32)


def _unpack_q4_1(blocks: Blocks) -> Values:
    codes = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return codes.astype(np.float32) * _half(blocks, 0) + _half(blocks, 2)


def _pack_q4_1(values: Values) -> Blocks:
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    scale = (high - low) / np.float32(15)
    codes = np.minimum((values - low) * _inverse(scale) + np.float32(0.5), 15).astype(np.uint8)
    packed = codes[:, :16] | codes[:, 16:] << 4
    return np.concatenate([_bytes_of_half(scale), _bytes_of_half(low), packed], axis=1)


def _unpack_q8_0(blocks: Blocks) -> Values:
    return blocks[:, 2:].view(np.int8).astype(np.float32) * _half(blocks, 0)


def _pack_q8_0(values: Values) -> Blocks:
    scale = np.abs(values).max(axis=1, keepdims=True) / np.float32(127)
    scaled = values * _inverse(scale)
    codes = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)  # halves away from zero
    return np.concatenate([_bytes_of_half(scale), codes.view(np.uint8)], axis=1)


def _inverse(scale: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)


def _bytes_of_half(column: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(column.astype(np.float16)).view(np.uint8)


def _plain(name: str, dtype: type[np.float16] | type[np.float32]) -> Format:
    block, block_bytes = GGML_TYPES[name]
    return Format(
        name,
        block,
        block_bytes,
        unpack=lambda blocks: np.ascontiguousarray(blocks).view(dtype).astype(np.float32),
        pack=lambda values: np.ascontiguousarray(values.astype(dtype)).view(np.uint8),
    )


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "Q4_1": Format("Q4_1", *GGML_TYPES["Q4_1"], unpack=_unpack_q4_1, pack=_pack_q4_1),
        "Q8_0": Format("Q8_0", *GGML_TYPES["Q8_0"], unpack=_unpack_q8_0, pack=_pack_q8_0),
        "F16": _plain("F16", np.float16),
        "F32": _plain("F32", np.float32),
    }
)
