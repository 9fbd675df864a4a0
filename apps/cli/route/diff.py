"""`hybrid route diff`: which prompts two policies send different ways, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ....router.evaluate.compare import Change, Compared, compare, figures_of
from ....router.evaluate.figure import Undefined
from ....router.evaluate.gates import judge, parse_gate
from ....router.evaluate.replay import replay
from ....router.evaluate.rows import read_rows
from ....router.policy.policy import Policy
from ..output import json_option, print_json, print_table
from . import gating
from .assumed import fail_option, html_option, input_option, seed_option, show_option, world_of, world_options, write_page
from .tables import number

LISTED = 20  # changed prompts a person sees at once


@click.command()
@click.argument("before")
@click.argument("after")
@input_option
@seed_option
@world_options
@fail_option
@show_option
@html_option
@click.option("--limit", default=LISTED, show_default=True, type=click.IntRange(min=0), help="List up to so many prompts; --json has all.")
@json_option
def diff(
    before: str,
    after: str,
    file: str,
    seed: int,
    facts: tuple[str, ...],
    at: str | None,
    seconds: tuple[str, ...],
    handover: float,
    gates: tuple[str, ...],
    show_prompts: bool,
    html: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show which prompts of a file the policies BEFORE and AFTER send different ways (files, preset:NAME, or "default").

    Prompts are named by their ids. Gates may name changed, cloud_share, cloud_share_change, cost_change, accuracy_change and others.
    """
    asked = [parse_gate(text) for text in gates]
    world, rows = world_of(facts, at, seconds, handover), read_rows(file)
    old, new = _policy(before), _policy(after)
    found = compare(replay(rows, old, world), replay(rows, new, world), seed=seed)
    judged = judge(asked, figures_of(found))
    prompts = {row.id: row.prompt for row in rows} if show_prompts else {}
    head = {"input": {"file": Path(file).name, "rows": len(rows)}, "before": _named(before, old), "after": _named(after, new)}
    if html is not None:
        from ...report.route_diff import route_diff_page

        write_page(html, route_diff_page(head, found, prompts))
    if as_json:
        listed = [_change(change, prompts) for change in found.changes]
        print_json({**head, **_body(found), "changes": listed, "gates": [one.to_dict() for one in judged]})
    else:
        _show(found, prompts, limit)
    gating.close(judged)


def _policy(source: str) -> Policy:
    return Policy.default() if source == "default" else Policy.load(source)


def _named(source: str, policy: Policy) -> dict[str, str]:
    return {"source": source, "hash": policy.hash, "version": policy.version}


def _body(found: Compared) -> dict[str, Any]:
    known = None if isinstance(found.accuracy, Undefined) else found.accuracy
    return {
        "changed": found.changed,
        "count": len(found.changes),
        "moves": found.moves,
        "causes": found.causes,
        "same_route_other_rule": found.same_route_other_rule,
        "cloud_share": [found.before.cloud_share, found.after.cloud_share],
        "cost": [found.before.cost, found.after.cost],
        "seconds": [found.before.seconds, found.after.seconds],
        "accuracy_change": known,
        "ci95": {"accuracy_change": None if isinstance(found.interval, Undefined) else list(found.interval)},
    }


def _change(change: Change, prompts: Mapping[str, str]) -> dict[str, Any]:
    sides = {
        side: {"route": one.route, "reason": one.reason, "rule": one.rule, "why": one.why}
        for side, one in (("before", change.before), ("after", change.after))
    }
    return {"id": change.id, **sides, **({"prompt": prompts[change.id]} if prompts else {})}


def _show(found: Compared, prompts: Mapping[str, str], limit: int) -> None:
    click.echo(f"{len(found.changes)} of {found.rows} prompts change their route ({found.changed:.1%})")
    if found.same_route_other_rule:
        click.echo(f"{found.same_route_other_rule} keep it by another rule")
    click.echo(f"cloud share {found.before.cloud_share:.1%} -> {found.after.cloud_share:.1%}")
    if found.cost is not None:
        click.echo(f"cost a prompt {found.before.cost:.4g} -> {found.after.cost:.4g}")
    if found.seconds is not None:
        click.echo(f"seconds a prompt {found.before.seconds:.2f} -> {found.after.seconds:.2f}")
    if not isinstance(found.accuracy, Undefined) and not isinstance(found.interval, Undefined):
        click.echo(f"accuracy {found.accuracy:+.3f} ({found.interval[0]:+.3f} to {found.interval[1]:+.3f})")
    if not found.changes:
        return
    for title, counts in (("route", found.moves), ("rule", found.causes)):
        click.echo("")
        print_table((title, "prompts"), list(counts.items()))
    if not limit:
        return
    click.echo("")
    shown = found.changes[:limit]
    head = ("id", "before", "after", "complexity", "rule before", "rule after") + (("prompt",) if prompts else ())
    print_table(head, [_line(change, prompts) for change in shown])
    if len(found.changes) > limit:
        click.echo(f"and {len(found.changes) - limit} more: --limit, or --json for all")


def _line(change: Change, prompts: Mapping[str, str]) -> tuple[object, ...]:
    line: tuple[object, ...] = (change.id, change.before.route, change.after.route, number(change.after.complexity, 2))
    line += (change.before.rule, change.after.rule)
    return (*line, " ".join(prompts[change.id].split())[:80]) if prompts else line
