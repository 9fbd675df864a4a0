"""`hybrid route train`: a router of one's own, from what both models made of one's prompts."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from ....router.evaluate.assess import OURS, Assessed, assess
from ....router.evaluate.figure import Figure, Interval, Undefined
from ....router.evaluate.outcomes import read_outcomes
from ....router.learned.model import Model
from ....router.learned.ours import Ours
from ....router.learned.store import save
from ....router.learned.train import check_enough, train
from ....shared_protocol.errors import Conflict
from ..output import json_option, print_json, print_table
from .assumed import seed_option
from .tables import between, number


@click.command("train")
@click.option("--input", "file", required=True, type=click.Path(dir_okay=False), help="Outcomes: prompts with scores of both models.")
@click.option("--out", required=True, type=click.Path(dir_okay=False), help="Write the learned router to this new file.")
@click.option("--edge", default="", help="The device's model, as the SDK names it: the router is then used for it alone.")
@click.option("--cloud", default="", help="The cloud's model, as it is asked for: the router is then used for it alone.")
@click.option("--folds", default=5, show_default=True, type=click.IntRange(2, 100), help="Of the cross-validation, grouped by prompt.")
@click.option("--date", "trained", type=click.DateTime(["%Y-%m-%d"]), help="Written into the file; today if it is not given.")
@seed_option
@json_option
def train_command(file: str, out: str, edge: str, cloud: str, folds: int, trained: datetime | None, seed: int, as_json: bool) -> None:
    """Learn from outcomes which prompts gain from the cloud, and say how well it can be told, beside the baselines.

    A row is an object with prompt, weak and strong (the scores of the device's and of the cloud's model, 0 to 1). The figures are of
    prompts that were held out; the file then holds a router of all rows. Name it in a policy: [learned] model = "FILE".
    """
    if Path(out).exists():
        raise Conflict(f"{out} is there already", hint="nothing is overwritten: name a new file")
    rows = read_outcomes(file)
    check_enough(rows)
    click.echo(f"measuring on {folds} folds of {len(rows)} rows", err=True)
    assessed = assess(rows, {OURS: Ours}, folds=folds, seed=seed)
    click.echo(f"training on {len(rows)} rows", err=True)
    model = train(rows, edge=edge, cloud=cloud, trained=(trained.date() if trained else date.today()).isoformat())
    figures = {name: value for name, value in _figures(assessed).items() if not isinstance(value, Undefined)}
    model = save(replace(model, about=msgspec.structs.replace(model.about, figures=model.about.figures | figures)), out)
    body = _body(model, assessed, out)
    if as_json:
        print_json(body)
    else:
        _show(body)


def _figures(assessed: Assessed) -> dict[str, Figure]:
    return {"ece": assessed.figures["ece"]} | {f"apgr.{name}": assessed.figures[f"apgr.{name}"] for name in assessed.names}


def _body(model: Model, assessed: Assessed, out: str) -> dict[str, Any]:
    about = model.about
    return {
        "out": out,
        "bytes": Path(out).stat().st_size,
        "id": model.id,
        "data": about.data,
        "edge": about.edge,
        "cloud": about.cloud,
        "trained": about.trained,
        "rows": assessed.rows,
        "prompts": assessed.groups,
        "folds": assessed.folds,
        "weak": assessed.weak,
        "strong": assessed.strong,
        "apgr": {name: _number(assessed.figures[f"apgr.{name}"]) for name in assessed.names},
        "ci95": {name: _pair(assessed.intervals[f"apgr.{name}"]) for name in assessed.names} | {"ece": _pair(assessed.intervals["ece"])},
        "paired": {name: [_number(value), *(_pair(ends) or (None, None))] for name, (value, ends) in assessed.paired.items()},
        "ece": _number(assessed.figures["ece"]),
        "ece_cloud": about.figures["ece_cloud"],
    }


def _show(body: dict[str, Any]) -> None:
    click.echo(f"{body['rows']} rows, {body['prompts']} different prompts; device {body['weak']:.3f}, cloud {body['strong']:.3f}\n")
    names = sorted(body["apgr"], key=lambda name: body["apgr"][name] or 0.0)
    print_table(("router", "APGR", "95 %"), [(name, number(body["apgr"][name]), between(body["ci95"][name])) for name in names])
    click.echo(f"\nECE: device {number(body['ece'])}, cloud {number(body['ece_cloud'])}")
    click.echo(f"wrote {body['out']} ({body['bytes']:,} bytes), router {body['id']}, of data {body['data']}")


def _number(value: Figure) -> float | None:
    return None if isinstance(value, Undefined) else value


def _pair(value: Interval) -> list[float] | None:
    return None if isinstance(value, Undefined) else list(value)
