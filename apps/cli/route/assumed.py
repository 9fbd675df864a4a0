"""The options that `test`, `diff`, `calibrate` and `replay` share: the file, the policy, and what is assumed around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import click

from ....router.costs import CostModel
from ....router.evaluate.replay import World, usual
from ....router.policy.policy import Policy
from ....router.request import RouteContext
from ....shared_protocol.errors import ConfigError, NotFound
from ....shared_protocol.whole_file import write_whole
from ..numbers import FiniteRange
from .facts import at_of_rows_option, fact_option, with_facts

TIMES = tuple(field.name.removesuffix("_s") for field in fields(CostModel) if field.name.endswith("_s"))

input_option = click.option(
    "--input", "file", required=True, type=click.Path(dir_okay=False), help="Prompts, one JSON object a line, or CSV."
)
fail_option = click.option("--fail-if", "gates", multiple=True, metavar="EXPR", help="Exit with 6 if so, such as 'cloud_share > 0.4'.")
seed_option = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Deals the prompts out, and draws the resamples."
)
show_option = click.option("--show-prompts", is_flag=True, help="Print prompts too, not only their ids.")


html_option = click.option("--html", type=click.Path(dir_okay=False), help="Write the report as a page of its own to this file.")


def world_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (fact_option, at_of_rows_option, _seconds_option, _handover_option):
        command = option(command)
    return command


_handover_option = click.option(
    "--handover", default=1.0, show_default=True, type=FiniteRange(0, 1), help="Share of cascades that the cloud answers in the end."
)
_seconds_option = click.option("--seconds", multiple=True, metavar="NAME=NUMBER", help=f"A time per token: {', '.join(TIMES)}.")


def world_of(facts: Sequence[str], at: str | None, seconds: Sequence[str], handover: float) -> World:
    """Raises UsageError for what is no fact. Without `at` no rule knows the time, unless a row does: a test must not depend on the day."""
    times = _times(seconds)

    def around(policy: Policy) -> RouteContext:
        context = with_facts(usual(policy), facts, at or NO_TIME)
        if at is None and not any(fact.startswith(("hour=", "weekday=")) for fact in facts):
            context = replace(context, moment=None)
        return replace(context, costs=replace(context.costs, **times))

    around(Policy.default())  # a fact that is none is said at once
    return World(around, handover)


NO_TIME = "1970-01-01T00:00"  # a Thursday, where only one of hour and weekday is given


def _times(seconds: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in seconds:
        name, _, number = text.partition("=")
        if name not in TIMES:
            raise click.UsageError(f"--seconds {text[:60]}: no such time; there are {', '.join(TIMES)}")
        try:
            found[f"{name}_s"] = float(number)
        except ValueError:
            raise click.UsageError(f"--seconds {text[:60]}: not NAME=NUMBER") from None
        if not 0 <= found[f"{name}_s"] < float("inf"):
            raise click.UsageError(f"--seconds {text[:60]}: must be 0 or more, and finite")
    return found


def policy_of(file: str | None) -> Policy:
    return Policy.load(file) if file else Policy.default()


def write_page(path: str, page: str) -> None:
    """Raises NotFound where no file can be written, NotEnoughSpace on a full disk; a page that was there before stays then."""
    try:
        write_whole(path, page.encode())
    except ConfigError as error:
        raise NotFound(error.message, hint="name a file in a folder that is there") from None
    click.echo(f"written to {path}", err=True)
