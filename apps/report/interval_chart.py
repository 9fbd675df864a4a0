"""Figures with their intervals below each other, so that one sees which differ."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .svg import Frame, text, ticks

ROW = 26.0


def interval_chart(rows: Sequence[tuple[str, float, tuple[float, float] | None]], *, mark: str, at: float, name: str) -> str:
    """`rows`: (name, value, interval), one below the other; `mark`: the row that stands out; `at`: where a line is drawn."""
    ends = [end for _, value, found in rows for end in (found or (value, value))] + [at]
    low, high = min(ends), max(ends)
    room = max(high - low, 0.01) * 0.06
    height = ROW * len(rows) + 52
    frame = Frame(low - room, high + room, 0, len(rows), height=height)
    shifted = 96.0  # for the names
    parts = []
    width = frame.width - shifted - 14

    def x(value: float) -> float:
        return shifted + (value - frame.x0) / (frame.x1 - frame.x0) * width

    for tick in ticks(frame.x0, frame.x1):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="6" y2="{height - 38:.1f}"/>')
        parts.append(text(x(tick), height - 22, f"{tick:g}", anchor="middle"))
    parts.append(f'<line class="ink" stroke-dasharray="4 3" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="6" y2="{height - 38:.1f}"/>')
    for number, (row, value, found) in enumerate(rows):
        y = 6 + ROW * (number + 0.5)
        css = "ours" if row == mark else "ink"
        parts.append(text(shifted - 10, y + 4, row, anchor="end", css="strong" if row == mark else ""))
        if found is not None:
            parts.append(f'<line class="{css}" stroke-width="2" x1="{x(found[0]):.1f}" x2="{x(found[1]):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        fill = "var(--ours)" if row == mark else "var(--soft)"
        said = f"{row}: {value:.3f}" + (f" ({found[0]:.3f} to {found[1]:.3f})" if found else "")
        parts.append(f'<circle cx="{x(value):.1f}" cy="{y:.1f}" r="4.5" style="fill:{fill}"><title>{escape(said)}</title></circle>')
    parts.append(text(shifted + width / 2, height - 5, name, anchor="middle"))
    return frame.draw(name, parts)
