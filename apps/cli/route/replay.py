"""`hybrid route replay`: what another policy would have made of recorded traffic."""

from __future__ import annotations

from pathlib import Path

import click

from ....router.evaluate.gates import judge, parse_gate
from ....router.evaluate.recording import Replayed, cloud_share, figures_of, read_records, replay_records
from ..output import json_option, print_json, print_table
from ..policy_option import policy_option
from . import gating
from .assumed import fail_option, policy_of

TAKEN = "as recorded: what privacy found, the complexity, whether drafting paid; a change of how these are judged needs the prompts"


@click.command()
@click.option("--input", "file", required=True, type=click.Path(dir_okay=False), help="A recording.")
@policy_option()
@fail_option
@json_option
def replay(file: str, policy_file: str | None, gates: tuple[str, ...], as_json: bool) -> None:
    """Ask a policy about a recording: which decisions would change, and why.

    Decided anew: rules, thresholds, limits, quota. Taken as recorded: what privacy found, the complexity, whether drafting paid.
    """
    asked = [parse_gate(text) for text in gates]
    policy, records = policy_of(policy_file), read_records(file)
    found = replay_records(records, policy)
    judged = judge(asked, figures_of(found))
    shares = [cloud_share([record.route for record in records]), cloud_share([one.route for one in found.again])]
    if as_json:
        print_json(
            {
                "input": {"file": Path(file).name, "rows": found.rows, "other_policies": found.other_policies},
                "policy": {"source": policy_file or "default", "hash": policy.hash, "version": policy.version},
                "changed": found.changed,
                "count": len(found.changes),
                "moves": found.moves,
                "causes": found.causes,
                "cloud_share": shares,
                "as_recorded": TAKEN,
                "blind_rules": list(found.blind),
                "gates": [one.to_dict() for one in judged],
            }
        )
    else:
        _show(found, shares)
    gating.close(judged)


def _show(found: Replayed, shares: list[float]) -> None:
    click.echo(
        f"{len(found.changes)} of {found.rows} decisions change ({found.changed:.1%}); cloud share {shares[0]:.1%} -> {shares[1]:.1%}"
    )
    for title, counts in (("route", found.moves), ("rule", found.causes)):
        if counts:
            click.echo("")
            print_table((title, "decisions"), list(counts.items()))
    click.echo(f"\n{TAKEN}")
    if found.blind:
        click.echo(f"rules over names, which no recording keeps, were taken as unknown: {', '.join(found.blind)}")
