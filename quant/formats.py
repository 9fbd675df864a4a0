"""The number formats of stored tensors: one table, exact to the bit with GGUF's public reference.

Layouts stand in blocks_32.py, blocks_k.py and blocks_iq4.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def _blocks(name: str, unpack: Callable[[Blocks], Values], pack: Callable[[Values], Blocks], exact_pack: bool = True) -> Format:
    return Format(name, *GGML_TYPES[name], unpack, pack, exact_pack)


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        form.name: form
        for form in (
            _blocks("Q4_0", blocks_32.unpack_q4_0, blocks_32.pack_q4_0),
            _blocks("Q4_1", blocks_32.unpack_q4_1, blocks_32.pack_q4_1),
            _blocks("Q5_0", blocks_32.unpack_q5_0, blocks_32.pack_q5_0),
            _blocks("Q5_1", blocks_32.unpack_q5_1, blocks_32.pack_q5_1),
            _blocks("Q8_0", blocks_32.unpack_q8_0, blocks_32.pack_q8_0),
            _blocks("Q2_K", blocks_k.unpack_q2_k, blocks_k.pack_q2_k, exact_pack=False),
            _blocks("Q3_K", blocks_k.unpack_q3_k, blocks_k.pack_q3_k, exact_pack=False),
            _blocks("Q4_K", blocks_k.unpack_q4_k, blocks_k.pack_q4_k, exact_pack=False),
            _blocks("Q5_K", blocks_k.unpack_q5_k, blocks_k.pack_q5_k, exact_pack=False),
            _blocks("Q6_K", blocks_k.unpack_q6_k, blocks_k.pack_q6_k, exact_pack=False),
            _blocks("IQ4_NL", blocks_iq4.unpack_iq4_nl, blocks_iq4.pack_iq4_nl, exact_pack=False),
            _blocks("IQ4_XS", blocks_iq4.unpack_iq4_xs, blocks_iq4.pack_iq4_xs, exact_pack=False),
            _plain("F16", np.float16),
            _blocks("BF16", _unpack_bf16, _pack_bf16),
            _plain("F32", np.float32),
        )
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
