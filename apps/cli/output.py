"""What all commands share: one JSON object on stdout, progress on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as their widest cell."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def discard_stdout() -> None:
    """Stdout takes nothing any more: keep Python from trying again at its end, where it would complain and exit with 120."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


class Progress:
    """Shows long work on stderr: on a terminal one line that is rewritten; elsewhere a line per stage, and one every ten seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, stream: Any = None) -> None:
        self._clock = clock
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream is not None and bool(self._stream.isatty())
        self._stage = ""
        self._began, self._first = 0.0, 0  # of the stage: when, and at how many bytes
        self._next = 0.0

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if self._stream is None:  # stderr was closed
            return
        now, new = self._clock(), what != self._stage
        if new:
            self._stage, self._began, self._first = what, now, done
        elif now < self._next:
            return
        self._next = now + (0.1 if self._terminal else 10.0)
        amount = f"  {megabytes(done)}" + (f" of {megabytes(total)}" if total else "") if done else ""
        rate = f"  {megabytes((done - self._first) / (now - self._began))}/s" if done > self._first and now > self._began else ""
        if self._terminal:
            click.echo(f"\r\x1b[K{what}{amount}{rate}", file=self._stream, nl=False)
        else:
            click.echo(f"{what}{amount}{rate}", file=self._stream)

    def close(self) -> None:
        if self._terminal and self._stage:
            click.echo("\r\x1b[K", file=self._stream, nl=False)
