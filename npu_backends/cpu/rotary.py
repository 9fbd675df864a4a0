"""Rotary position tables, computed in float64 and rounded once, so that every kernel rotates by the same angles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.architecture import Rotary

CHUNK = 4096  # positions: float64 costs several times the table


def rotary_table(positions: int, rotary: Rotary) -> NDArray[np.float32]:
    """Return (cos, sin) of position * frequency, times the magnitude, float32 [positions, pairs, 2]."""
    frequencies = np.array(rotary.frequencies)
    table = np.empty((positions, len(frequencies), 2), np.float32)
    for start in range(0, positions, CHUNK):
        angles = np.arange(start, min(start + CHUNK, positions), dtype=np.float64)[:, None] * frequencies
        table[start : start + CHUNK, :, 0] = rotary.magnitude * np.cos(angles)
        table[start : start + CHUNK, :, 1] = rotary.magnitude * np.sin(angles)
    return table
