"""`hybrid route test`: what a policy does with a file of prompts, and how good the router is where outcomes are known."""

from __future__ import annotations

from pathlib import Path

import click

from ....router.evaluate.assess import OURS, assess
from ....router.evaluate.contenders import contenders
from ....router.evaluate.gates import check_names, judge, parse_gate
from ....router.evaluate.outcomes import outcomes_of
from ....router.evaluate.replay import replay, shares
from ....router.evaluate.report import gate_names, named_figures, policy_quality, to_dict
from ....router.evaluate.rows import read_rows
from ....router.evaluate.scorers import baselines
from ..output import json_option, print_json
from ..policy_option import policy_option
from . import gating
from .assumed import fail_option, html_option, input_option, policy_of, seed_option, world_of, world_options, write_page
from .tables import show_test


@click.command()
@input_option
@policy_option()
@click.option("--folds", default=5, show_default=True, type=click.IntRange(2, 100), help="Of the cross-validation, grouped by prompt.")
@seed_option
@world_options
@fail_option
@html_option
@json_option
def test(
    file: str,
    policy_file: str | None,
    folds: int,
    seed: int,
    facts: tuple[str, ...],
    at: str | None,
    seconds: tuple[str, ...],
    handover: float,
    gates: tuple[str, ...],
    html: str | None,
    as_json: bool,
) -> None:
    """Replay a file of prompts through a policy: shares, reasons, costs.

    Where rows have scores of both models, also how good the router is, by cross-validation, beside its baselines: chance, the
    prompt's length, a ridge on its words, and an oracle. Nothing is sent, nothing is generated, and no prompt is printed.
    """
    asked = [parse_gate(text) for text in gates]
    scorers = [*baselines([]), *contenders()]
    check_names(asked, gate_names(scorers))  # before the minutes, not after
    policy, world = policy_of(policy_file), world_of(facts, at, seconds, handover)
    rows = read_rows(file)
    decided = replay(rows, policy, world)
    found = shares(decided)
    outcomes = outcomes_of(rows)
    quality = policy_quality([one for one in decided if one.weak is not None], seed=seed) if outcomes else None
    assessed = assess(outcomes, contenders(), folds=folds, seed=seed) if outcomes else None
    judged = judge(asked, named_figures(found, quality, assessed, scorers))
    head = {
        "input": {"file": Path(file).name, "rows": len(rows), "outcomes": len(outcomes), "prompts": len({row.group for row in rows})},
        "policy": {"source": policy_file or "default", "hash": policy.hash, "version": policy.version},
        "ours": contenders()[OURS]().name,
        "folds": folds,
        "seed": seed,
    }
    body = to_dict(head=head, found=found, quality=quality, assessed=assessed, judged=judged)
    if html is not None:
        from ...report.route_test import route_test_page

        write_page(html, route_test_page(body, decided, assessed))
    if as_json:
        print_json(body)
    else:
        show_test(body)
    gating.close(judged)
