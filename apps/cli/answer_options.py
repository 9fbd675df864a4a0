"""The options that `hybrid run` and `hybrid chat` share: how an answer is drawn, and what computes it on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .numbers import FiniteRange

RUNTIMES = ("native", "llama_cpp", "npu")  # as edge/open_runtime.py has them, which would load NumPy for --help
_OPTIONS = (
    click.option("--system", help="What the model is told first."),
    click.option("--max-tokens", type=click.IntRange(min=1), help="Length of an answer; default: until it ends."),
    click.option("--temperature", type=FiniteRange(0, 2), default=1.0, show_default=True, help="0 takes the likeliest."),
    click.option("--seed", type=int, help="The same seed gives the same text; default: another one each time."),
    click.option(
        "--runtime",
        type=click.Choice(RUNTIMES),
        default="native",
        show_default=True,
        envvar="HYBRID_RUNTIME",
        show_envvar=True,
        help="What computes here.",
    ),
    click.option("--target", help="The chip of --runtime npu: a preset or a .toml file; default: ethos-u85-2048."),
    click.option("--threads", type=click.IntRange(1, 1024), help="Compute threads; default: one per CPU that may be used."),
    click.option("--context", type=click.IntRange(min=1), help="Tokens held at most; default: 4096, or fewer where the model knows fewer."),
)


def answer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give `command` these options, in this order."""
    for option in reversed(_OPTIONS):  # the last one applied is the first in the help
        command = option(command)
    return command


def of_runtime(options: dict[str, Any]) -> dict[str, Any]:
    """Those that say what computes, as `open_runtime` and `HybridClient` take them."""
    return {name: options[name] for name in ("runtime", "threads", "context", "target")}
