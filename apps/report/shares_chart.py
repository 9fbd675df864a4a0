"""Where the prompts go: bars of shares, and the same over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from ...router.evaluate.replay import ROUTES, Decided
from .page import ROUTE_COLOURS, key
from .svg import Frame, text

BUCKETS = 32
MOST = 10  # bars; the rest is one more


def share_bars(shares: Mapping[str, float], colours: Mapping[str, str] | None = None) -> str:
    """One bar a name, as long as its share."""
    listed = list(shares.items())
    shown = listed[:MOST] + ([(f"{len(listed) - MOST} more", sum(share for _, share in listed[MOST:]))] if len(listed) > MOST else [])
    rows = []
    for name, share in shown:
        colour = (colours or {}).get(name, "var(--soft)")
        bar = f'<div class="bar" style="background:{colour};width:{100 * share:.2f}%"></div>'
        rows.append(
            f'<tr><td class="name"><code>{escape(name)}</code></td><td class="number">{share:.1%}</td><td class="length">{bar}</td></tr>'
        )
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def shares_over_time(decided: Sequence[Decided]) -> str | None:
    """Stacked shares of the routes in spans of equal length; None unless rows have two different times."""
    known = [(one.time, one.route) for one in decided if one.time is not None]
    times = np.array([time for time, _ in known])
    if not known or times.min() == times.max():
        return None
    spans = min(BUCKETS, len(np.unique(times)))
    place = np.minimum(((times - times.min()) / (times.max() - times.min()) * spans).astype(int), spans - 1)
    frame = Frame(0, spans, 0, 1, height=240)
    parts = []
    for span in range(spans):
        routes = [route for (_, route), at in zip(known, place, strict=True) if at == span]
        below = 0.0
        for route in ROUTES:
            share = routes.count(route) / len(routes) if routes else 0.0
            if share:
                title = f"{route}: {share:.1%} of {len(routes)} prompts"
                parts.append(frame.box(span + 0.04, span + 0.96, below, below + share, title, style=f"fill:{ROUTE_COLOURS[route]}"))
            below += share
    parts += [text(40, frame.y(value) + 4, f"{value:.0%}", anchor="end") for value in (0, 0.5, 1)]
    parts.append(text(frame.x(0), frame.height - 22, moment(float(times.min()))))
    parts.append(text(frame.x(spans), frame.height - 22, moment(float(times.max())), anchor="end"))
    return frame.draw("Shares of the routes over time", parts) + key([(route, ROUTE_COLOURS[route]) for route in ROUTES])


def moment(seconds: float) -> str:
    """In UTC."""
    return str(np.datetime64(int(seconds), "s")).replace("T", " ") + " UTC"
