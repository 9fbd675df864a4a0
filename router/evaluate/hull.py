"""AIQ: the mean height of a router's hull on the cost-quality plane, once its cost is scaled to 0..1.

Source: RouterBench, Hu et al., arXiv 2403.12031, section 4: mixing two thresholds at random reaches every point between them, so
what a router can do is the upper hull of its curve; and nobody who may pay less is worse off, so the hull never falls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .figure import Floats


def hulls(x: Floats, y: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(corners [b, m], count [b]): the indices of the upper hull of each of b curves of m points, x never falling along a curve.

    Andrew's monotone chain (1979) for all curves in step: each keeps a stack of corners, and a corner on or below the line from the
    one before to the new point is taken off. Points above each other may leave an upright step, which has no area.
    """
    curves, points = x.shape
    rows = np.arange(curves)
    corners = np.zeros((curves, points), dtype=np.int64)
    count = np.zeros(curves, dtype=np.int64)
    for point in range(points):
        open_rows = rows[count >= 2]
        while open_rows.size:
            last, before = corners[open_rows, count[open_rows] - 1], corners[open_rows, count[open_rows] - 2]
            x0, y0 = x[open_rows, before], y[open_rows, before]
            over = (x[open_rows, last] - x0) * (y[open_rows, point] - y0) - (y[open_rows, last] - y0) * (x[open_rows, point] - x0)
            open_rows = open_rows[over >= 0]
            count[open_rows] -= 1
            open_rows = open_rows[count[open_rows] >= 2]
        corners[rows, count] = point
        count += 1
    return corners, count


def aiq(x: Floats, y: Floats) -> Floats:
    """[b]: the mean height between the first and the last x of each curve, in the unit of y; NaN where all x are equal."""
    corners, count = hulls(x, y)
    found = np.empty(len(x))
    for curve in range(len(x)):
        at = corners[curve, : count[curve]]
        width = x[curve, -1] - x[curve, 0]
        height = np.maximum.accumulate(y[curve, at])
        found[curve] = ((height[1:] + height[:-1]) * np.diff(x[curve, at])).sum() / 2 / width if width > 0 else np.nan
    return found
