"""The surroundings of a decision as a command line gives them: `--fact battery=0.2`, `--at 2026-01-01T03:00`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import click

from ....router.policy.rules import known_variables
from ....router.policy.variables import PER, VARIABLES
from ....router.request import Moment, RouteContext

OF_THE_REQUEST = {"user": "--user", "tenant": "--tenant", "max_tokens": "--max-tokens"}  # options of explain, keys of a row elsewhere
FRACTIONS = ("battery", "thermal_headroom")


def with_facts(context: RouteContext, facts: Sequence[str], at: str | None) -> RouteContext:
    """`context` with each NAME=VALUE set, at the local time `at` (ISO 8601; None: now). Raises click.UsageError."""
    try:
        moment = datetime.now() if at is None else datetime.fromisoformat(at)
    except ValueError:
        raise click.UsageError(f"--at {at}: no time; write it as 2026-01-01T03:00") from None
    context = replace(context, moment=Moment(moment.hour, moment.isoweekday()))
    for fact in facts:
        name, equals, value = fact.partition("=")
        if not equals:
            raise click.UsageError(f"--fact {fact}: write NAME=VALUE")
        if name not in VARIABLES:
            raise click.UsageError(f"--fact {fact}: there is no {name} ({known_variables(name)})")
        if name not in _SET:
            instead = "it follows from the request and the other facts"
            if name in OF_THE_REQUEST:
                instead = f"hybrid route PROMPT takes {OF_THE_REQUEST[name]}; in a file of prompts give a row the key {name}"
            raise click.UsageError(f"--fact {fact}: {name} cannot be given ({instead})")
        context = _SET[name](context, _value(fact, name, value))
    return context


def _value(fact: str, name: str, text: str) -> Any:
    kind = VARIABLES[name].type
    try:
        value = {"true": True, "false": False}[text] if kind is bool else kind(text)
    except (ValueError, KeyError):
        value = None
    if value is None or (kind is float and not math.isfinite(value)):
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise click.UsageError(f"--fact {fact}: {name} is {wanted}")
    if name in FRACTIONS and not 0 <= value <= 1:
        raise click.UsageError(f"--fact {fact}: {name} is a number from 0 to 1, such as {name}=0.2")
    return value


def _device(key: str, factor: float = 1) -> Callable[[RouteContext, Any], RouteContext]:
    return lambda context, value: replace(context, device=replace(context.device, **{key: value if factor == 1 else value * factor}))


def _link(key: str, factor: float = 1) -> Callable[[RouteContext, Any], RouteContext]:
    return lambda context, value: replace(context, link=replace(context.link, **{key: value if factor == 1 else value * factor}))


def _price(key: str) -> Callable[[RouteContext, Any], RouteContext]:
    return lambda context, value: replace(context, costs=replace(context.costs, **{key: value / PER}))


def _moment(key: str) -> Callable[[RouteContext, Any], RouteContext]:
    return lambda context, value: replace(context, moment=replace(context.moment or Moment(0, 1), **{key: value}))


_SET: dict[str, Callable[[RouteContext, Any], RouteContext]] = {
    "battery": _device("battery"),
    "thermal_headroom": _device("thermal_headroom"),
    "memory_mb": _device("memory_free_bytes", 1_000_000),
    "load": _device("load"),
    "edge_available": _device("edge_available"),
    "reachable": _link("reachable"),
    "rtt_ms": _link("rtt_s", 1e-3),
    "price_in": _price("price_in"),
    "price_out": _price("price_out"),
    "hour": _moment("hour"),
    "weekday": _moment("weekday"),
    "quota_left": lambda context, value: replace(context, quota=replace(context.quota, available=value)),
}

fact_option = click.option(
    "--fact", "facts", multiple=True, metavar="NAME=VALUE", help="A fact of the surroundings, such as battery=0.2 or rtt_ms=80."
)
at_option = click.option("--at", metavar="TIME", help="As if it were then, local time: 2026-01-01T03:00. [default: now]")
at_of_rows_option = click.option(
    "--at", metavar="TIME", help="The time of rows that have none: 2026-01-01T03:00. Without it, no rule knows theirs."
)
