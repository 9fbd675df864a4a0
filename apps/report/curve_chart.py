"""The cost-quality curve: ours with its hull, the baselines, and where the policy stands."""

from __future__ import annotations

from ...router.evaluate.assess import OURS, Assessed
from .page import key
from .svg import BOTTOM, TOP, Frame, text, thinned

_LINES = {
    "oracle": "stroke:#8a939b;stroke-width:1;stroke-dasharray:1 3",
    "random": "stroke:#8a939b;stroke-width:1.2;stroke-dasharray:5 4",
    "length": "stroke:#3b8fd0;stroke-width:1.5",
    "tfidf_ridge": "stroke:#009e73;stroke-width:1.5",
    "rules": "stroke:#cc79a7;stroke-width:1.5",
}
_PLAIN = "stroke:#8a939b;stroke-width:1.2"
_DASHES = {"oracle": " (dotted)", "random": " (dashed)"}
_COLOURS = {name: style.split(";")[0].removeprefix("stroke:") for name, style in _LINES.items()}


def curve_chart(assessed: Assessed, share: float, accuracy: float | None) -> str:
    """`share`, `accuracy`: of the policy's own decisions."""
    heights = [float(value) for name, plot in assessed.curves.items() if name != "oracle" for value in plot.y]
    heights += [assessed.weak, assessed.strong] + ([accuracy] if accuracy is not None else [])
    low, high = min(heights), max(heights)
    room = max(high - low, 0.01) * 0.08
    frame = Frame(0, 1, low - room, high + room)
    parts = [frame.axes("share of prompts that the cloud answers", "mean score")]
    for name, plot in assessed.curves.items():
        if name != OURS:
            xs, ys = thinned(plot.x.tolist(), plot.y.tolist())
            parts.append(frame.line(xs, [min(y, frame.y1) for y in ys], style=_LINES.get(name, _PLAIN)))
    if assessed.hull is not None:
        parts.append(
            frame.line(assessed.hull.x.tolist(), assessed.hull.y.tolist(), css="ours", style="stroke-width:1;stroke-dasharray:2 3")
        )
    ours = assessed.curves[OURS]
    parts.append(frame.line(*thinned(ours.x.tolist(), ours.y.tolist()), css="ours", style="stroke-width:2.4"))
    at = frame.x(share)
    parts.append(f'<line class="ink" stroke-dasharray="3 3" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP:g}" y2="{frame.height - BOTTOM:.1f}"/>')
    if accuracy is not None:
        words = f"the policy: {share:.0%} to the cloud, {accuracy:.3f}"
        parts.append(frame.dot(share, accuracy, 5.5, words, css="strong"))
        side = "end" if share > 0.6 else "start"
        foot = frame.height - BOTTOM - 10  # below the curves, which would run through the words beside the dot
        parts.append(text(at + (-8 if side == "end" else 8), foot, words, anchor=side, css="strong"))
    names = [(f"{name}{_DASHES.get(name, '')}", _COLOURS.get(name, "#8a939b")) for name in assessed.curves if name != OURS]
    return frame.draw("Cost-quality curve", parts) + key([(OURS, "var(--ours)"), ("hull of ours (dotted)", "var(--ours)"), *names])
