"""One block of weights: a row of bytes with its scale, and the small arithmetic that every format shares.

All scales are computed in float32 and in the reference's order of operations, so results agree with it to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Blocks = NDArray[np.uint8]  # [blocks, bytes of a block]
Values = NDArray[np.float32]  # [blocks, elements of a block]
Codes = NDArray[Any]  # uint8 [blocks, ...]; NumPy's stubs lose the type at the first shift by a Python integer


@dataclass(frozen=True, slots=True)
class Format:
    """One format. `unpack` is exact. `pack` rounds as the public reference does where `exact_pack`, else to its own nearest codes."""

    name: str
    block: int  # elements
    block_bytes: int
    unpack: Callable[[Blocks], Values]
    pack: Callable[[Values], Blocks]
    exact_pack: bool = True

    @property
    def bits(self) -> float:
        """Bits per weight, scales included."""
        return 8 * self.block_bytes / self.block


def half(blocks: Blocks, at: int) -> Values:
    """The f16 at byte `at` of every block, as float32 [blocks, 1]."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16).astype(np.float32)


def bytes_of_half(column: Values) -> Blocks:
    """float32 [blocks, 1] as the two bytes of an f16 each."""
    return np.ascontiguousarray(column.astype(np.float16)).view(np.uint8)


def inverse(scale: Values) -> Values:
    """1 / scale, and 0 for 0: a block of zeros has codes of zero."""
    return np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)


def farthest(values: Values) -> Values:
    """Per row of the last axis, the value farthest from 0 with its sign, the first of equals: [..., 1]."""
    at = np.abs(values).argmax(axis=-1, keepdims=True)
    return np.take_along_axis(values, at, axis=-1)


def nibbles(packed: Codes) -> Codes:
    """[blocks, runs * n] bytes -> [blocks, runs, 2, n] codes: of a run of n bytes first all low halves, then all high ones."""
    return np.stack([packed & 15, packed >> 4], axis=-2)


def join_nibbles(codes: Codes) -> Codes:
    """The inverse: [..., 2, n] codes -> [..., n] bytes."""
    joined: Codes = codes[..., 0, :] | codes[..., 1, :] << 4
    return joined
