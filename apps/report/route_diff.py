"""The page of `hybrid route diff`: what changed, and each changed prompt."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from ...router.evaluate.compare import Change, Compared
from ...router.evaluate.figure import Undefined
from .page import ROUTE_COLOURS, badge, page, pair, section, table, tiles
from .shares_chart import share_bars

MOST = 2000  # prompts in the table


def route_diff_page(head: Mapping[str, Any], found: Compared, prompts: Mapping[str, str]) -> str:
    """`head`: input, before and after, as in the JSON. `prompts` by id, empty unless they are to be shown."""
    before, after = head["before"], head["after"]
    subtitle = (
        f"{found.rows} prompts of {head['input']['file']}: {before['source']} ({before['hash']}), then {after['source']} ({after['hash']})"
    )
    parts = [tiles(_first(found))]
    parts.append(
        pair(
            section("Before", "Routes under the first policy.", share_bars(found.before.route, ROUTE_COLOURS)),
            section("After", "Routes under the second.", share_bars(found.after.route, ROUTE_COLOURS)),
        )
    )
    if found.changes:
        moves = table(("move", "prompts"), [(_arrow(move), str(n)) for move, n in found.moves.items()], numbers=(1,))
        causes = table(
            ("rule before, rule after", "prompts"), [(f"<code>{escape(c)}</code>", str(n)) for c, n in found.causes.items()], numbers=(1,)
        )
        parts.append(pair(section("Moves", "From where to where.", moves), section("Causes", "What settled it, before and after.", causes)))
        names = ("id", "before", "after", "complexity", "why before", "why after") + (("prompt",) if prompts else ())
        rows = [_row(change, prompts) for change in found.changes[:MOST]]
        note = (
            "Every prompt whose route changes."
            if len(found.changes) <= MOST
            else f"The first {MOST} of {len(found.changes)}; --json has all."
        )
        parts.append(section("Changed prompts", note, table(names, rows, numbers=(3,))))
    return page("Route diff", subtitle, parts)


def _first(found: Compared) -> list[tuple[str, str]]:
    first = [("change their route", f"{found.changed:.1%}"), ("prompts", str(len(found.changes)))]
    first.append(("cloud share", f"{found.before.cloud_share:.1%} → {found.after.cloud_share:.1%}"))
    if found.cost is not None:
        first.append(("cost a prompt", f"{found.cost:+.4g}"))
    if found.seconds is not None:
        first.append(("seconds a prompt", f"{found.seconds:+.2f}"))
    if not isinstance(found.accuracy, Undefined):
        first.append(("accuracy", f"{found.accuracy:+.3f}"))
    return first


def _arrow(move: str) -> str:
    one, _, other = move.partition(" -> ")
    return f"{badge(one)} → {badge(other)}"


def _row(change: Change, prompts: Mapping[str, str]) -> list[str]:
    cells = [f"<code>{escape(change.id)}</code>", badge(change.before.route), badge(change.after.route), f"{change.after.complexity:.2f}"]
    cells += [f"<code>{escape(one.rule)}</code><br>{escape(one.why)}" for one in (change.before, change.after)]
    return [*cells, escape(prompts[change.id])] if prompts else cells
