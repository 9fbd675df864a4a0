"""`hybrid route calibrate`: the threshold for a wanted share of cloud calls, error rate of the device, or budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ....router.confidence.threshold import Promised
from ....router.evaluate.drift import Shift, features_of, shifts
from ....router.evaluate.figure import Figure, Interval, Undefined
from ....router.evaluate.folds import fold_of
from ....router.evaluate.gates import Gate, Judged, judge, parse_gate
from ....router.evaluate.patch import patched
from ....router.evaluate.replay import Decided, World, replay
from ....router.evaluate.rows import Row, read_rows
from ....router.evaluate.thresholds import (
    Half,
    measured,
    threshold_for_budget,
    threshold_for_errors,
    threshold_for_share,
    with_threshold,
)
from ....router.policy.policy import PRESET, Policy, presets
from ....shared_protocol.errors import Conflict
from ....shared_protocol.whole_file import write_whole
from ..numbers import FiniteRange
from ..output import json_option, print_json, print_table
from ..policy_option import policy_option
from . import gating
from .assumed import fail_option, input_option, policy_of, seed_option, world_of, world_options
from .tables import between, number

FEW = 100  # prompts: a share of so many is known to ten points up or down


@click.command()
@input_option
@policy_option()
@click.option("--cloud-share", type=FiniteRange(0, 1), help="So many of the prompts should go to the cloud.")
@click.option("--error-rate", type=FiniteRange(0, 1, min_open=True, max_open=True), help="At most so many of the device's answers wrong.")
@click.option("--budget", type=FiniteRange(min=0), help="A prompt should cost at most so much.")
@click.option(
    "--delta",
    default=0.1,
    show_default=True,
    type=FiniteRange(0, 1, min_open=True, max_open=True),
    help="Chance that the error rate is not kept.",
)
@click.option("--band", default=0.0, show_default=True, type=FiniteRange(0, 1), help="Width of the cascade below the threshold; 0: none.")
@click.option("--check", type=click.Path(dir_okay=False), help="Other prompts: do they look like these? Exits with 6 if not.")
@click.option("--out", type=click.Path(dir_okay=False), help="Write the policy with the new threshold to this new file.")
@seed_option
@world_options
@fail_option
@json_option
def calibrate(
    file: str,
    policy_file: str | None,
    cloud_share: float | None,
    error_rate: float | None,
    budget: float | None,
    delta: float,
    band: float,
    check: str | None,
    out: str | None,
    seed: int,
    facts: tuple[str, ...],
    at: str | None,
    seconds: tuple[str, ...],
    handover: float,
    gates: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find the threshold on the complexity for a wish: --cloud-share, --error-rate, or --budget.

    It is fitted on one half of the prompts and measured on the other. The policy itself is never changed: --out writes a new one.
    """
    asked = [parse_gate(text) for text in gates]
    wishes = {"cloud_share": cloud_share, "error_rate": error_rate, "budget": budget}
    wish = [(name, value) for name, value in wishes.items() if value is not None]
    if len(wish) != 1:
        raise click.UsageError("give one of --cloud-share, --error-rate and --budget")
    if out is not None and Path(out).exists():
        raise Conflict(f"{out} is there already", hint="nothing is overwritten: name a new file")
    policy, world, rows = policy_of(policy_file), world_of(facts, at, seconds, handover), read_rows(file)
    half = fold_of([row.group for row in rows], 2, seed)
    fitted, held = ([row for row, part in zip(rows, half, strict=True) if part == side] for side in (0, 1))
    before, other = replay(fitted, policy, world), replay(held, policy, world)
    promised: Promised | None = None
    if error_rate is not None:
        threshold, promised = threshold_for_errors(before, other, error_rate, delta)
    elif budget is not None:
        threshold = threshold_for_budget(before, budget, band=band, handover=handover)
    else:
        threshold = threshold_for_share(before, wish[0][1], band=band, handover=handover)
    new = with_threshold(policy, threshold, band if promised is None else 0.0)
    on_fit, on_held = measured(replay(fitted, new, world), seed=seed), measured(replay(held, new, world), seed=seed)
    drift = _drift(before, fitted, check, policy, world) if check else []
    figures: dict[str, Figure] = {**on_held.figures, "drift": max((shift.distance for shift in drift), default=0.0)}
    judged = judge(asked, figures) + ([_alarm(drift)] if check else [])
    note = _note(wish[0], Path(file).name, on_fit, on_held)
    text = patched(_text(policy_file), new, note, policy_file or "policy", Path(policy_file).parent if policy_file else None)
    body = {
        "input": {"file": Path(file).name, "rows": len(rows)},
        "policy": {"source": policy_file or "default", "hash": policy.hash, "version": policy.version},
        "wanted": dict(wish),
        "threshold": threshold,
        "bands": {"cascade_from": new.complexity.cascade_from, "hard_from": threshold},
        "before": {"cascade_from": policy.complexity.cascade_from, "hard_from": policy.complexity.hard_from},
        "changed": new.hash != policy.hash,
        "fitted": _half(on_fit),
        "held_out": _half(on_held),
        "few": on_held.rows < FEW,
        "promise": None if promised is None else _promise(promised),
        "drift": [{"name": one.name, "distance": one.distance, "allowed": one.allowed, "drifted": one.drifted} for one in drift],
        "alarm": any(one.drifted for one in drift),
        "new_hash": new.hash,
        "gates": [one.to_dict() for one in judged],
    }
    if out is not None:
        write_whole(out, text.encode())
    if as_json:
        print_json(body)
    else:
        _show(body, note, out)
    gating.close(judged)


def _drift(decided: Sequence[Decided], rows: Sequence[Row], check: str, policy: Policy, world: World) -> list[Shift]:
    """Complexity and features of the rows that the threshold was fitted on, against those of the file `check`."""
    new = read_rows(check)
    scores = [np.array([one.complexity for one in side]) for side in (decided, replay(new, policy, world))]
    one, other = (features_of([row.prompt for row in side]) for side in (rows, new))
    return shifts({"complexity": scores[0], **one}, {"complexity": scores[1], **other})


def _alarm(drift: Sequence[Shift]) -> Judged:
    """What `--check` itself asks for, as a gate on the number that has moved farthest."""
    worst = drift[0]
    return Judged(
        Gate(f"drift of {worst.name} > {worst.allowed:.3f}", f"drift of {worst.name}", ">", worst.allowed), worst.distance, worst.drifted
    )


def _text(policy_file: str | None) -> str:
    if policy_file is None:
        return ""
    if policy_file.startswith(PRESET):
        return presets()[policy_file.removeprefix(PRESET)]
    return Path(policy_file).read_text(encoding="utf-8")


def _note(wish: tuple[str, float], file: str, fitted: Half, held: Half) -> str:
    name = "cost" if wish[0] == "budget" else "device_error" if wish[0] == "error_rate" else "cloud_share"
    value, found = _value(held.figures[name]), _pair(held.intervals[name])
    return (
        f"For {wish[0]} {wish[1]:g} on prompts like those of {file}: fitted on {fitted.rows}, measured on {held.rows} others,\n"
        f"{name} {number(value, 4)}, 95 % interval {between(found, 4)}. On other prompts this threshold means something else."
    )


def _half(half: Half) -> dict[str, Any]:
    return {
        "rows": half.rows,
        **{name: _value(value) for name, value in half.figures.items()},
        "ci95": {name: _pair(value) for name, value in half.intervals.items()},
    }


def _promise(promised: Promised) -> dict[str, Any]:
    return {"error_rate": promised.error_rate, "delta": promised.delta, "kept": promised.kept, "wrong": promised.wrong, "n": promised.n}


def _value(value: Figure) -> float | None:
    return None if isinstance(value, Undefined) else value


def _pair(value: Interval) -> list[float | None] | None:
    return None if isinstance(value, Undefined) else list(value)


def _show(body: dict[str, Any], note: str, out: str | None) -> None:
    was = f"before: {body['before']['hard_from']!r}" if body["changed"] else "as before: the policy would not change"
    click.echo(f"complexity.hard_from = {body['threshold']!r} ({was})")
    click.echo(f"{note}\n")
    fitted, held = body["fitted"], body["held_out"]
    if body["few"]:
        click.echo(
            f"Few prompts: a share of {held['rows']} is known to {0.98 / held['rows'] ** 0.5:.0%} up or down. Take {2 * FEW} or more.\n"
        )
    names = [name for name in ("cloud_share", "cost", "accuracy", "device_error") if held[name] is not None]
    print_table(
        ("", "fitted", "held out", "95 %"), [(n, number(fitted[n], 4), number(held[n], 4), between(held["ci95"][n], 4)) for n in names]
    )
    if promise := body["promise"]:
        click.echo(
            f"\nOf {promise['kept']} prompts that the device would keep {promise['wrong']} were wrong: with probability "
            f"{1 - promise['delta']:.0%}, at most {promise['error_rate']:.1%} of such prompts are."
        )
    if body["drift"]:
        click.echo("\nDo the other prompts look like these?")
        print_table(
            ("", "distance", "allowed", ""),
            [(one["name"], number(one["distance"]), number(one["allowed"]), "drifted" if one["drifted"] else "") for one in body["drift"]],
        )
    click.echo(f"\nwritten to {out}" if out else "\nNothing was changed; --out FILE writes the policy with this threshold.")
