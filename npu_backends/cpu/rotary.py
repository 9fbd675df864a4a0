"""Rotary position tables, computed in float64 and rounded once, so that every kernel rotates by the same angles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rotary_table(positions: int, head_dim: int, base: float) -> NDArray[np.float32]:
    """Return (cos, sin) of position * base^(-2i / head_dim), float32 [positions, head_dim / 2, 2]. Source: Su et al. 2021."""
    frequencies = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequencies
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
