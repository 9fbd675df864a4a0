"""Rotary position tables, computed in float64 and rounded once, so that every kernel rotates by the same angles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.architecture import Architecture, Rotary
from ...shared_protocol.errors import EngineFailed

CHUNK = 256  # positions, computed together at fixed places: no bit depends on how far a step reached


class RotaryTable:
    """Cosine and sine of position * frequency, times the magnitude, computed as far as steps need them: a context that a file merely
    claims takes address space and no memory.

    interleaved   [position, pair, (cos, sin)]
    else          [position, (cos, sin), pair]         both as HybridRotary in kernels/api.h
    """

    def __init__(self, positions: int, rotary: Rotary) -> None:
        """Raises EngineFailed where not even the address space is there."""
        rows, pairs = -(-positions // CHUNK) * CHUNK, len(rotary.frequencies)
        try:
            self.array: NDArray[np.float32] = np.empty((rows, pairs, 2) if rotary.interleaved else (rows, 2, pairs), np.float32)
        except MemoryError:
            raise EngineFailed(f"too little memory for the rotary table of {positions} positions") from None
        self.rotary = rotary
        self._filled = 0

    def fill(self, positions: int) -> None:
        """Compute at least the first `positions` rows."""
        for start in range(self._filled, positions, CHUNK):
            rows = slice(start, start + CHUNK)
            angles = np.arange(start, start + CHUNK, dtype=np.float64)[:, None] * np.array(self.rotary.frequencies)
            cosine, sine = self.rotary.magnitude * np.cos(angles), self.rotary.magnitude * np.sin(angles)
            self.array[rows] = np.stack([cosine, sine], axis=2 if self.rotary.interleaved else 1)
            self._filled = start + CHUNK

    def at(self, position: int) -> NDArray[np.float32]:
        """(cos, sin) of one position that was filled, [pairs, 2]."""
        row: NDArray[np.float32] = self.array[position]
        return row if self.rotary.interleaved else row.T

    @property
    def nbytes(self) -> int:
        """Bytes that were computed so far."""
        return self._filled * 8 * len(self.rotary.frequencies)


def rotary_tables(architecture: Architecture) -> dict[Rotary, RotaryTable]:
    """One table for all layers that turn alike, of as many positions as the context has."""
    rotaries = {architecture.layer_rotary(layer) for layer in range(architecture.num_layers)}
    return {rotary: RotaryTable(architecture.context_length, rotary) for rotary in rotaries}
