"""A memory plan as a map: time from left to right, addresses from bottom to top, one box a buffer."""

from __future__ import annotations

import colorsys
import math
import zlib

from ...compiler.report import ArenaReport
from .svg import Frame, text, ticks

MOST = 4000  # boxes: more are not told apart


def plan_chart(arena: ArenaReport) -> str:
    """The bound is a dashed line: no plan stays below it."""
    steps = max((buffer.upper for buffer in arena.buffers), default=1)
    top = max(arena.size, arena.bound, 1)
    frame = Frame(0, steps, 0, top * 1.04, height=300)
    parts = [text(frame.x(step), frame.height - 28, f"{step:g}", anchor="middle") for step in ticks(0, steps)]
    unit = 1024 ** min(3, int(math.log(top, 1024)))  # marks are round in KiB or MiB
    marks = [unit * mark for mark in ticks(0, top / unit, about=4)]
    parts += [text(50, frame.y(address) + 4, in_bytes(address), anchor="end") for address in marks]
    largest = sorted(arena.buffers, key=lambda buffer: -buffer.size * (buffer.upper - buffer.lower))[:MOST]
    for buffer in largest:
        title = f"{buffer.id}: {buffer.size:,} bytes at {buffer.offset:,}, steps {buffer.lower} to {buffer.upper}"
        style = f"fill:{_colour(buffer.id)};stroke:var(--card);stroke-width:.6"
        parts.append(frame.box(buffer.lower, buffer.upper, buffer.offset, buffer.offset + buffer.size, title, style=style))
    parts.append(frame.line([0, steps], [arena.bound, arena.bound], style="stroke-width:1.5;stroke-dasharray:5 4", css="ours"))
    parts.append(text(frame.width / 2, frame.height - 8, "step", anchor="middle"))
    left_out = f" (the {MOST} largest)" if len(arena.buffers) > MOST else ""
    return frame.draw(f"Plan of the arena {arena.name}{left_out}", parts)


def _colour(name: str) -> str:
    """The same for the same part of every layer: digits do not count."""
    hue = zlib.crc32("".join(c for c in name if not c.isdigit()).encode()) % 360 / 360
    red, green, blue = colorsys.hls_to_rgb(hue, 0.6, 0.45)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def in_bytes(size: float) -> str:
    """`640 B`, `1.5 KiB`, `98.2 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            return f"{size:.3g} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1024
    raise AssertionError("unreachable")
