"""Rotary position tables, computed in float64 and rounded once, so that every kernel rotates by the same angles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.architecture import Rotary


def rotary_table(positions: int, rotary: Rotary) -> NDArray[np.float32]:
    """Return (cos, sin) of position * frequency, times the magnitude, float32 [positions, pairs, 2]."""
    angles = np.arange(positions, dtype=np.float64)[:, None] * np.array(rotary.frequencies)
    return (rotary.magnitude * np.stack([np.cos(angles), np.sin(angles)], axis=-1)).astype(np.float32)
