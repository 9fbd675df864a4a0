"""What was expected against what came: calibration by bins, and the risk of keeping so many prompts on the device."""

from __future__ import annotations

from collections.abc import Sequence

from ...router.evaluate.assess import Plot
from ...router.evaluate.reliability import Bin
from .svg import Frame, thinned


def reliability_chart(bins: Sequence[Bin]) -> str:
    """Dots on the diagonal are forecasts that came true; a dot's area grows with its rows."""
    frame = Frame(0, 1, 0, 1, width=460, height=340)
    most = max(one.n for one in bins)
    parts = [frame.axes("expected score of the device", "score it reached", percent_x=False)]
    parts.append(frame.line([0, 1], [0, 1], css="ink", style="stroke-width:1;stroke-dasharray:4 4"))
    parts.append(frame.line([one.predicted for one in bins], [one.observed for one in bins], css="ours", style="stroke-width:1.4"))
    for one in bins:
        title = f"{one.n} rows: expected {one.predicted:.3f}, reached {one.observed:.3f}"
        parts.append(frame.dot(one.predicted, one.observed, 3 + 5 * (one.n / most) ** 0.5, title))
    return frame.draw("Calibration curve", parts)


def risk_chart(risk: Plot) -> str:
    known = [(x, y) for x, y in zip(risk.x.tolist(), risk.y.tolist(), strict=True) if y == y]
    xs, ys = thinned([x for x, _ in known], [y for _, y in known])
    frame = Frame(0, 1, 0, max(0.05, *ys) * 1.1, width=460, height=340)
    parts = [
        frame.axes("share of prompts that the device keeps", "how wrong it is on them"),
        frame.line(xs, ys, css="ours", style="stroke-width:2.2"),
    ]
    return frame.draw("Risk by coverage", parts)
