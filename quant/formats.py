"""The number formats of stored tensors: one table, exact to the bit with GGUF's public reference.

Layouts stand in blocks_32.py, blocks_k.py and blocks_iq4.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.errors import ModelFileError
from ..shared_protocol.gguf import GGML_TYPES, Tensor
from . import blocks_32, blocks_iq4, blocks_k
from .block import Blocks, Format, Values

_AT_ONCE = 1 << 16  # elements: what is unpacked at once, intermediates included, stays in the cache


def dequantize(tensor: Tensor) -> NDArray[np.float32]:
    """Return the tensor's values, float32 [shape]. Infinite scales give infinities and NaN, as in the reference.

    Raises ModelFileError for a type that is not in FORMATS.
    """
    chosen = format_of(tensor)
    blocks = tensor.data.reshape(-1, chosen.block_bytes)
    values = np.empty((len(blocks), chosen.block), np.float32)
    step = _AT_ONCE // chosen.block
    with np.errstate(over="ignore", invalid="ignore"):
        for at in range(0, len(blocks), step):
            values[at : at + step] = chosen.unpack(blocks[at : at + step])
    return values.reshape(tensor.shape)


def quantize(values: NDArray[np.floating[Any]], type_name: str) -> NDArray[np.uint8]:
    """Pack values, whose last axis is a multiple of the block (see `fitting_type`), into uint8 [bytes].

    Raises ModelFileError for values that the type cannot hold: a block of codes holds no NaN and no infinity, an f16 scale ends at 65504.
    """
    chosen = FORMATS[type_name]
    assert values.shape[-1] % chosen.block == 0
    rows = values.reshape(-1, chosen.block)
    packed = np.empty((len(rows), chosen.block_bytes), np.uint8)
    step = _AT_ONCE // chosen.block
    with np.errstate(over="ignore", invalid="ignore"):
        for at in range(0, len(rows), step):
            part = rows[at : at + step].astype(np.float32)
            if chosen.block > 1 and not np.isfinite(part).all():
                raise ModelFileError(f"values that are not finite cannot be packed as {type_name}", hint="F16, BF16 and F32 carry them")
            packed[at : at + step] = chosen.pack(part)
            if chosen.block > 1 and not np.isfinite(chosen.unpack(packed[at : at + step])).all():
                raise ModelFileError(f"values up to {np.abs(part).max():.3g} are too large for the scales of {type_name}")
    return packed.reshape(-1)


def format_of(tensor: Tensor) -> Format:
    """The format of a tensor. Raises ModelFileError for one that is not in FORMATS, with those that are."""
    chosen = FORMATS.get(tensor.type_name)
    if chosen is None:
        raise ModelFileError(f"the tensor {tensor.name!r} has the type {tensor.type_name}; supported: {', '.join(FORMATS)}")
    return chosen


def fitting_type(type_name: str, columns: int) -> str:
    """The type in which rows of `columns` weights are stored when `type_name` is wanted: itself, or the first of its FALLBACK that fits.

    A fallback never has fewer bits. F16 fits every row.
    """
    while columns % FORMATS[type_name].block:
        type_name = FALLBACK[type_name]
    return type_name


def _plain(name: str, dtype: type[np.float16] | type[np.float32]) -> Format:
    return Format(
        name,
        *GGML_TYPES[name],
        unpack=lambda blocks: np.ascontiguousarray(blocks).view(dtype).astype(np.float32),
        pack=lambda values: np.ascontiguousarray(values.astype(dtype)).view(np.uint8),
    )


def _unpack_bf16(blocks: Blocks) -> Values:
    upper = np.ascontiguousarray(blocks).view("<u2").astype(np.uint32)
    return (upper << 16).view(np.float32)


def _pack_bf16(values: Values) -> Blocks:
    bits = values.view(np.uint32)
    rounded = bits + (0x7FFF + (bits >> 16 & 1)) >> 16  # to the nearest, halves to even
    quiet = bits >> 16 | 64  # a NaN stays one, whatever its lower bits were
    return np.where(np.isnan(values), quiet, rounded).astype("<u2").view(np.uint8)


def _blocks(name: str, module: Any, exact_pack: bool = True) -> Format:
    suffix = name.lower()
    return Format(name, *GGML_TYPES[name], getattr(module, f"unpack_{suffix}"), getattr(module, f"pack_{suffix}"), exact_pack)


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        **{name: _blocks(name, blocks_32) for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")},
        **{name: _blocks(name, blocks_k, exact_pack=False) for name in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")},
        **{name: _blocks(name, blocks_iq4, exact_pack=False) for name in ("IQ4_NL", "IQ4_XS")},
        "F16": _plain("F16", np.float16),
        "BF16": Format("BF16", *GGML_TYPES["BF16"], unpack=_unpack_bf16, pack=_pack_bf16),
        "F32": _plain("F32", np.float32),
    }
)

# blocks of 256 -> blocks of 32 with at least as many bits -> F16
FALLBACK: Mapping[str, str] = MappingProxyType(
    {
        "Q2_K": "Q4_0",
        "Q3_K": "Q4_0",
        "IQ4_XS": "IQ4_NL",
        "Q4_K": "Q4_1",
        "Q5_K": "Q5_1",
        "Q6_K": "Q8_0",
        **dict.fromkeys(("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL"), "F16"),
    }
)
