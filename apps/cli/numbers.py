"""Numbers on a command line: those that are none are wrong usage, and are told before any work begins."""

from __future__ import annotations

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A number in a range, which `nan` is not."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no number", param, ctx)
        return found


def milliseconds(context: click.Context, option: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    """The callback of an option that takes one number above 0 and up to a million, or several with commas between them."""
    if value is None:
        return None
    try:
        numbers = tuple(float(part) for part in value.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(0 < number <= 1e6 for number in numbers):
        raise click.BadParameter(f"{value} is not one or more numbers above 0 and up to a million, with commas between them")
    return numbers
