"""What `--fail-if` does at the end of a command: says each verdict on stderr, and exits with 6 when one failed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ....router.evaluate.gates import Judged

GATE_FAILED = 6


def close(judged: Sequence[Judged]) -> None:
    """Call it last. Raises Exit(6) where a gate failed."""
    for one in judged:
        click.echo(one.sentence(), err=True)
    if any(one.failed for one in judged):
        raise click.exceptions.Exit(GATE_FAILED)
