"""The graph as boxes in the order in which they run: what was fused into each, where it runs, what shape it gives."""

from __future__ import annotations

from html import escape

from ...compiler.report import FlowReport, GraphReport
from .segments_chart import chip_colour


def flow_chart(graph: GraphReport) -> str:
    return f'<div class="flow">{"".join(map(_box, graph.flow))}</div>'


def _box(step: FlowReport) -> str:
    kinds = "".join(f"<div>{escape(kind)}</div>" for kind in step.body or (step.kind,))
    shape = " x ".join(map(str, step.shape))
    title = f"{step.name} on {step.chip}"
    return f'<div class="step" style="border-color:{chip_colour(step.chip)}" title="{escape(title)}">{kinds}<span>{shape}</span></div>'
