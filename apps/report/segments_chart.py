"""The run from left to right: which chip works when."""

from __future__ import annotations

from ...compiler.report import GraphReport
from .page import key
from .svg import Frame, text, ticks


def chip_colour(chip: str) -> str:
    return "#3b8fd0" if chip == "cpu" else "#c2410c"


def segments_chart(graph: GraphReport) -> str:
    """One lane a chip; a box a segment, as wide as it takes."""
    chips = sorted({segment.chip for segment in graph.segments}, key=lambda chip: chip == "cpu")
    total = sum(segment.seconds for segment in graph.segments) or 1e-12
    frame = Frame(0, total * 1e3, 0, len(chips), height=80 + 44 * len(chips))
    parts = [text(frame.x(at), frame.height - 28, f"{at:g}", anchor="middle") for at in ticks(0, total * 1e3, about=8)]
    began = 0.0
    for segment in graph.segments:
        lane = len(chips) - 1 - chips.index(segment.chip)
        title = f"{segment.name} on {segment.chip}: {segment.ops} operations, {segment.seconds * 1e3:.4g} ms, {segment.cycles:,} cycles"
        style = f"fill:{chip_colour(segment.chip)};stroke:var(--card);stroke-width:.5"
        parts.append(frame.box(began * 1e3, (began + segment.seconds) * 1e3, lane + 0.12, lane + 0.88, title, style=style))
        began += segment.seconds
    parts.append(text(frame.width / 2, frame.height - 8, "ms", anchor="middle"))
    return frame.draw(f"Segments of {graph.name}", parts) + key([(chip, chip_colour(chip)) for chip in chips])
