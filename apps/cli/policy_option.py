"""`--policy`, for every command that reads a policy of its own accord."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def policy_option(**more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option, which gives `policy_file`; `more` as click.option takes it."""
    return click.option(
        "--policy",
        "policy_file",
        envvar="HYBRID_POLICY",
        show_envvar=True,
        type=click.Path(dir_okay=False),
        help="A policy file (TOML), or preset:NAME.",
        **more,
    )
