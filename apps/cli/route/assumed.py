"""The options that `test`, `diff`, `calibrate` and `replay` share: the file, the policy, and what is assumed around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from ....router.costs import CostModel
from ....router.evaluate.replay import World
from ....router.policy import Policy

NUMBERS = (*(field.name for field in fields(CostModel)), "rtt_s")

input_option = click.option(
    "--input", "file", required=True, type=click.Path(dir_okay=False), help="Prompts, one JSON object a line, or CSV."
)
policy_option = click.option(
    "--policy", "policy_file", envvar="HYBRID_POLICY", type=click.Path(dir_okay=False), help="A policy file (TOML), or preset:NAME."
)
fail_option = click.option("--fail-if", "gates", multiple=True, metavar="EXPR", help="Exit with 6 if so, such as 'cloud_share > 0.4'.")
seed_option = click.option("--seed", default=0, show_default=True, help="Deals the prompts out, and draws the resamples.")
show_option = click.option("--show-prompts", is_flag=True, help="Print prompts too, not only their ids.")


def world_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--handover",
        default=1.0,
        show_default=True,
        type=click.FloatRange(0, 1),
        help="Share of cascades that the cloud answers in the end.",
    )(command)
    return click.option(
        "--cost", "costs", multiple=True, metavar="NAME=NUMBER", help=f"A price or a time, per token: {', '.join(NUMBERS)}."
    )(command)


def world_of(costs: tuple[str, ...], handover: float) -> World:
    """Raises UsageError for a name that is none, or a number that cannot be."""
    found: dict[str, float] = {}
    for text in costs:
        name, _, number = text.partition("=")
        if name not in NUMBERS:
            raise click.UsageError(f"--cost {text[:60]}: no such number; there are {', '.join(NUMBERS)}")
        try:
            found[name] = float(number)
        except ValueError:
            raise click.UsageError(f"--cost {text[:60]}: not NAME=NUMBER") from None
        if not 0 <= found[name] < float("inf"):
            raise click.UsageError(f"--cost {text[:60]}: must be 0 or more, and finite")
    rtt = found.pop("rtt_s", None)
    return World(costs=CostModel(**found), rtt_s=rtt, handover=handover)


def policy_of(file: str | None) -> Policy:
    return Policy.load(file) if file else Policy.default()
