"""Drawing in numbers of one's own: a frame with axes, and lines, dots and bars in it. Every function gives SVG text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

LEFT, RIGHT, TOP, BOTTOM = 56.0, 28.0, 12.0, 44.0


@dataclass(frozen=True, slots=True)
class Frame:
    """A plane from (x0, y0) to (x1, y1), drawn `width` by `height`. Both ranges are wider than nothing."""

    x0: float
    x1: float
    y0: float
    y1: float
    width: float = 920.0
    height: float = 420.0

    def x(self, value: float) -> float:
        return LEFT + (value - self.x0) / (self.x1 - self.x0) * (self.width - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return self.height - BOTTOM - (value - self.y0) / (self.y1 - self.y0) * (self.height - TOP - BOTTOM)

    def draw(self, label: str, parts: Sequence[str]) -> str:
        """`label` says to a screen reader what is seen."""
        return f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'

    def axes(self, x_name: str, y_name: str, *, percent_x: bool = True, percent_y: bool = False) -> str:
        parts = []
        for value in ticks(self.y0, self.y1):
            at = self.y(value)
            parts.append(f'<line class="grid" x1="{LEFT:g}" x2="{self.width - RIGHT:g}" y1="{at:.1f}" y2="{at:.1f}"/>')
            parts.append(text(LEFT - 6, at + 4, _shown(value, percent_y), anchor="end"))
        below = self.height - BOTTOM + 16
        parts += [text(self.x(value), below, _shown(value, percent_x), anchor="middle") for value in ticks(self.x0, self.x1)]
        parts.append(text((LEFT + self.width - RIGHT) / 2, self.height - 5, x_name, anchor="middle"))
        middle = (TOP + self.height - BOTTOM) / 2
        return "".join(parts) + text(11, middle, y_name, anchor="middle", more=f'transform="rotate(-90 11 {middle:.0f})"')

    def line(self, xs: Sequence[float], ys: Sequence[float], *, style: str, css: str = "") -> str:
        """`style`: stroke, its width, its dashes."""
        points = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))
        return f'<polyline fill="none" stroke-linejoin="round" points="{points}" class="{css}" style="{style}"/>'

    def dot(self, x: float, y: float, radius: float, title: str, *, style: str = "", css: str = "oursfill") -> str:
        return (
            f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius:.1f}" class="{css}" style="{style}">'
            f"<title>{escape(title)}</title></circle>"
        )

    def box(self, x0: float, x1: float, y0: float, y1: float, title: str, *, style: str) -> str:
        left, top = self.x(x0), self.y(y1)
        return (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(0.0, self.x(x1) - left):.1f}" height="{max(0.0, self.y(y0) - top):.1f}" '
            f'style="{style}"><title>{escape(title)}</title></rect>'
        )


def text(x: float, y: float, words: str, *, anchor: str = "start", css: str = "", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}" {more}>{escape(words)}</text>'


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, some `about` of them."""
    step = 10 ** math.floor(math.log10((high - low) / about))
    step = min((step * factor for factor in (1, 2, 2.5, 5, 10)), key=lambda s: abs((high - low) / s - about))
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def thinned(xs: Sequence[float], ys: Sequence[float], most: int = 240) -> tuple[list[float], list[float]]:
    """At most some `most` of the points, both ends among them: more are not seen."""
    if len(xs) <= most:
        return list(xs), list(ys)
    at = sorted({round(place * (len(xs) - 1) / (most - 1)) for place in range(most)})
    return [xs[place] for place in at], [ys[place] for place in at]


def _shown(value: float, percent: bool) -> str:
    return f"{100 * value:g} %" if percent else f"{value:g}"
