"""What a person types and sees: messages of several lines, the text of an answer as it comes, and how long that took."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from .output import discard_stdout

BLOCK = '"""'
HISTORY_LINES = 1000


class EndOfInput(Exception):
    """Nothing more will be typed."""


def read_message(read_line: Callable[[bool], str]) -> str:
    """One message: a line; lines that end in a backslash and the line after them; or all between two marks of three quotes.

    `read_line` gets True when it reads on; it raises EndOfInput. An end in the middle ends the message too, if it has begun.
    """
    line = read_line(False)
    if line.lstrip().startswith(BLOCK):
        return _block(line.lstrip().removeprefix(BLOCK), read_line)
    lines = [line]
    with suppress(EndOfInput):
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(read_line(True))
    return "\n".join(lines)


def _block(line: str, read_line: Callable[[bool], str]) -> str:
    lines = []
    with suppress(EndOfInput):
        while not line.rstrip().endswith(BLOCK):
            lines.append(line)
            line = read_line(True)
        lines.append(line.rstrip().removesuffix(BLOCK))
    if lines and not lines[0]:
        del lines[0]
    if lines and not lines[-1]:
        del lines[-1]
    return "\n".join(lines)


def printable(text: str) -> str:
    """`text` without what a terminal would obey: a model may write escape sequences, by its own or somebody's wish."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") or c in _JOINERS else "�" for c in text)


_JOINERS = "\u200c\u200d"  # within words of some scripts, and within emoji


@dataclass
class Writer:
    """Writes an answer as it comes and measures it; control characters go to files and pipes only."""

    clock: Callable[[], float]
    began: float = field(init=False)
    first: float | None = None
    last: float | None = None
    ends_line: bool = True

    def __post_init__(self) -> None:
        self.began = self.clock()
        self._terminal = sys.stdout.isatty()
        with suppress(AttributeError):
            sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]

    def write(self, text: str) -> None:
        if not text:
            return
        self.last = self.clock()
        self.first = self.last if self.first is None else self.first
        self.ends_line = text.endswith("\n")
        sys.stdout.write(printable(text) if self._terminal else text)
        sys.stdout.flush()

    def end_line(self) -> None:
        if not self.ends_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self.ends_line = True

    def pace(self, tokens: int) -> str:
        """`23 tokens, the first after 0.12 s, then 41.2 tokens/s`."""
        told = f"{tokens} token{'' if tokens == 1 else 's'}"
        if self.first is None or self.last is None:
            return told
        told += f", the first after {self.first - self.began:.2f} s"
        rate = tokens_per_s(tokens, self.last - self.first)
        return told if rate is None else f"{told}, then {rate:.1f} tokens/s"


def tokens_per_s(tokens: int, seconds: float) -> float | None:
    """Of the tokens after the first one, which came `seconds` before the last."""
    return (tokens - 1) / seconds if tokens > 1 and seconds > 0 else None


def say(text: str) -> None:
    """A line about the answer, beside it: on stderr, dim on a terminal."""
    click.secho(printable(text), err=True, dim=sys.stderr.isatty())


@contextmanager
def line_editing(history: Path | None) -> Iterator[None]:
    """Edit lines with arrow keys, and find those of earlier times again; `history` None keeps them for this time only."""
    try:
        import readline
    except ImportError:  # a Python without it reads lines as they are
        yield
        return
    readline.set_history_length(HISTORY_LINES)
    if history is not None and os.path.exists(history) and not os.path.isfile(history):  # a pipe would be waited for
        history = None
    if history is not None:
        with suppress(OSError):
            readline.read_history_file(history)
    try:
        yield
    finally:
        if history is not None:
            with suppress(OSError):
                history.parent.mkdir(parents=True, exist_ok=True)
                os.close(os.open(history, os.O_CREAT, 0o600))
                readline.write_history_file(history)


def leave_closed_pipe() -> None:
    """Nobody reads stdout any more: end as other programs do."""
    discard_stdout()
    sys.exit(1)
