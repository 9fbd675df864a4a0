"""A figure of a report: a number, or the reason why there is none. What cannot be known is never printed as a huge number."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Undefined:
    """`why` is a sentence for people. A gate on an undefined figure fails."""

    why: str


Figure = float | Undefined
Interval = tuple[float, float] | Undefined


def figure(value: float, why: str) -> Figure:
    """The number, or Undefined where the arithmetic gave none (NaN)."""
    return Undefined(why) if math.isnan(value) else float(value)
