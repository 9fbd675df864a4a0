"""Operations under their roof: how much work each does for a byte that it moves, and how fast, on two logarithmic scales."""

from __future__ import annotations

import math

from ...compiler.report import GraphReport, TargetReport
from .svg import Frame, text


def roofline_chart(graph: GraphReport, target: TargetReport) -> str | None:
    """One dot for operations that are alike, as large as their share of the time. None where the chip multiplies nothing."""
    shown = [op for op in graph.ops if op.chip != "cpu" and op.macs and op.seconds > 0 and op.bytes]
    if not shown:
        return None
    peak, bandwidth = target.macs_per_cycle * target.clock_hz, target.dram_bytes_per_s
    points = [(math.log10(op.macs / op.bytes), math.log10(op.macs / op.seconds), op) for op in shown]
    ridge = math.log10(peak / bandwidth)
    left, right = min(ridge, *(x for x, _, _ in points)) - 0.5, max(ridge, *(x for x, _, _ in points)) + 0.7
    bottom = min(math.log10(bandwidth) + left, *(y for _, y, _ in points)) - 0.3
    frame = Frame(left, right, bottom, math.log10(peak) + 0.4, height=340)
    parts = [text(frame.x(x), frame.height - 28, f"{10.0**x:g}", anchor="middle") for x in range(math.ceil(left), math.floor(right) + 1)]
    for power in range(math.ceil(bottom), math.floor(math.log10(peak) + 0.4) + 1):
        at = frame.y(power)
        parts.append(f'<line class="grid" x1="56" x2="{frame.width - 28:g}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(text(50, at + 4, f"{10.0 ** (power - 9):g}", anchor="end"))
    roof = [math.log10(bandwidth) + left, math.log10(peak), math.log10(peak)]
    parts.append(frame.line([left, ridge, right], roof, style="stroke-width:2", css="ink"))
    total = sum(op.seconds for op in shown)
    for x, y, op in sorted(points, key=lambda point: -point[2].seconds):
        title = f"{op.count} x {op.kind} {op.first}: {op.macs / op.seconds / 1e9:.3g} GMAC/s, {op.macs / op.bytes:.3g} MAC a byte"
        parts.append(frame.dot(x, y, 3 + 14 * math.sqrt(op.seconds / total), title, style="fill-opacity:.55"))
    parts.append(text(frame.width / 2, frame.height - 6, "multiply-accumulates for a byte moved", anchor="middle"))
    parts.append(text(62, 22, "GMAC/s"))
    return frame.draw(f"Roofline of {graph.name}", parts)
