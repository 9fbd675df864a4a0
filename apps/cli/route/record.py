"""`hybrid route record`: the decisions on a file of prompts, without their text."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import click

from ....edge.client.recorder import Recorder
from ....router.decide import decide
from ....router.evaluate.replay import at, usual
from ....router.evaluate.rows import read_rows
from ....shared_protocol.errors import Conflict
from ..output import json_option, print_json
from ..policy_option import policy_option
from .assumed import input_option, policy_of


@click.command()
@input_option
@policy_option()
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False), help="The recording: a new file. Its key stands beside it, in OUT.key."
)
@json_option
def record(file: str, policy_file: str | None, out: str, as_json: bool) -> None:
    """Decide on every prompt of a file and keep the decisions as live recording does: numbers and keyed hashes, no text.

    Live traffic is recorded by the SDK: HybridClient(record="decisions.jsonl").
    """
    if Path(out).exists():
        raise Conflict(f"{out} is there already", hint="nothing is overwritten: name a new file")
    rows, policy = read_rows(file), policy_of(policy_file)
    times = iter([time.time() if row.time is None else row.time for row in rows])
    recorder = Recorder(out, lambda: next(times))
    routes: Counter[str] = Counter()
    for row in rows:
        context = at(row.time, usual(policy))
        decision = decide(row.request, context)
        recorder.record(row.request, context, decision)
        routes[decision.route] += 1
    recorder.close()
    written = len(rows) - recorder.lost
    if as_json:
        print_json({"out": out, "key": f"{out}.key", "policy": policy.hash, "written": written, "lost": recorder.lost, "routes": routes})
    else:
        click.echo(f"{written} decisions written to {out}, without text", err=True)
