"""Files of one JSON value a line: one way to read them, and one sentence for each thing that can be wrong with them.

No error holds a line, not even in its context: lines may be prompts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from .bounded_file import read_at_most
from .errors import InvalidRequest, NotFound

T = TypeVar("T")


def lines_in(path: str | Path, most: int, *, hint: str) -> list[tuple[str, str]]:
    """The lines that are not empty, each with its place: "file.jsonl:3". Raises NotFound for a file that cannot be read or has more than
    `most` bytes, InvalidRequest for one that is not UTF-8."""
    source = Path(path)
    try:
        data = read_at_most(source, most)
    except OSError as error:
        raise NotFound(f"{source}: {error.strerror}", hint=hint) from None
    text, broken = "", -1
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        broken = error.start  # raised below: this error holds the text
    if broken >= 0:
        raise InvalidRequest(f"{source.name} is not UTF-8 at byte {broken}", hint="save it as UTF-8")
    return [(f"{source.name}:{number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def line_as(kind: type[T], line: str | bytes, where: str, *, what: str, hint: str) -> T:
    """The value of a line. Raises InvalidRequest: "file.jsonl:3: no record of a decision: ...", `what` being "record of a decision"."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        said = str(error)
    raise InvalidRequest(f"{where}: no {what}: {said}", hint=hint)
