"""Reading a file of prompts, with or without the scores that both models reached on them.

One JSON object a line (or, in a file named *.csv, one row under a header of the same names):

    prompt      the text of the user; or `messages` in OpenAI's shape (JSON lines only)
    weak        score of the device's model, 0..1 or a boolean; also weak_correct, weak_score
    strong      score of the cloud's model, alike; a row has both scores or neither
    id          names the row in reports; its line number when it is not there
    group       rows of one group are never split between fitting and measuring; equal prompts when it is not there
    time        when it was asked, for shares over time: seconds since 1970, or ISO 8601; also timestamp
    user, tenant, max_tokens, tools    as in a request

Other keys are left alone. No error ever shows a prompt: it names file, line and key.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...shared_protocol.bounded_file import lines_of
from ...shared_protocol.errors import InvalidRequest, NotFound
from ...shared_protocol.json_lines import line_as
from ..request import RouteRequest

SCORES = {"weak": ("weak", "weak_correct", "weak_score"), "strong": ("strong", "strong_correct", "strong_score")}
MAX_TIME = 253_402_300_799  # the end of the year 9999; what is larger is in milliseconds, or no time
MAX_LINE = 2**26  # characters
HINT = "a row has a prompt and, to be measured by, weak and strong scores from 0 to 1"


@dataclass(frozen=True, slots=True)
class Row:
    """One line. `prompt` is what a scorer sees: the texts of the user's turns. Scores are None together."""

    id: str
    prompt: str = field(repr=False)
    request: RouteRequest = field(repr=False)
    group: str
    line: int
    weak: float | None = None
    strong: float | None = None
    time: float | None = None  # seconds since 1970


def read_rows(path: str | Path) -> list[Row]:
    """Every row, in order. Raises NotFound, or InvalidRequest that names the line; an empty file is an error too."""
    source = Path(path)
    rows: list[Row] = []
    lines: dict[str, int] = {}
    for line, record in _records(source):
        row = _row(record, f"{source.name}:{line}", line)
        if row.id in lines:
            raise InvalidRequest(f"{source.name}:{line}: the id of line {lines[row.id]} again", param="id", hint="give each row its own id")
        lines[row.id] = line
        rows.append(row)
    if not rows:
        raise InvalidRequest(f"{source.name} holds no rows", hint=HINT)
    return rows


def group_of(prompt: str) -> str:
    """Equal for prompts that differ in case, white space or Unicode form only; says nothing of the prompt to a reader."""
    folded = " ".join(unicodedata.normalize("NFKC", prompt).casefold().split())
    return hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _records(source: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    broken: str | None = None
    try:
        with source.open(encoding="utf-8-sig", newline="") as file:
            if source.suffix == ".csv":
                reader = csv.DictReader(lines_of(file, MAX_LINE), strict=True)
                try:
                    for record in reader:
                        yield reader.line_num, {key: value for key, value in record.items() if key and value not in (None, "")}
                except csv.Error as error:
                    raise InvalidRequest(f"{source.name}:{reader.line_num}: no CSV: {error}", hint=HINT) from None
                return
            for line, text in enumerate(lines_of(file, MAX_LINE), 1):
                if text.strip():
                    yield line, _object(text, f"{source.name}:{line}")
    except OSError as error:
        raise NotFound(f"{source}: {error.strerror}", hint="name a file of JSON lines") from None
    except UnicodeDecodeError as error:
        broken = error.reason  # raised below: this error holds the text
    if broken is not None:
        raise InvalidRequest(f"{source.name} is not UTF-8: {broken}", hint="save it as UTF-8")


def _object(text: str, where: str) -> Mapping[str, Any]:
    found: object = line_as(Any, text, where, what="JSON", hint="one JSON object a line")
    if not isinstance(found, dict):
        raise InvalidRequest(f"{where}: a row must be an object, found {type(found).__name__}", hint=HINT)
    return found


def _row(record: Mapping[str, Any], where: str, line: int) -> Row:
    request = _request(record, where)
    prompt = "\n\n".join(message.content or "" for message in request.messages if message.role == "user")
    if not prompt.strip():
        raise InvalidRequest(f"{where}: the user says nothing", param="prompt", hint=HINT)
    weak, strong = (_score(record, side, where) for side in SCORES)
    if (weak is None) != (strong is None):
        missing = "weak" if weak is None else "strong"
        raise InvalidRequest(f"{where}: only one of two scores: {missing} is missing", param=missing, hint=HINT)
    group = _text(record, "group", where)
    return Row(
        id=_text(record, "id", where) or str(line),
        prompt=prompt,
        request=request,
        group=group if group is not None else group_of(prompt),
        line=line,
        weak=weak,
        strong=strong,
        time=_time(record, where),
    )


def _request(record: Mapping[str, Any], where: str) -> RouteRequest:
    if ("prompt" in record) == ("messages" in record):
        raise InvalidRequest(f"{where}: a row must have either prompt or messages", param="prompt", hint=HINT)
    said = record.get("prompt", record.get("messages"))
    if "prompt" in record and not isinstance(said, str):
        raise InvalidRequest(f"{where}: prompt must be a string, found {type(said).__name__}", param="prompt")
    try:
        limit = record.get("max_tokens")
        return RouteRequest.of(
            said,
            max_tokens=int(limit) if isinstance(limit, str) and limit.isdecimal() else limit,  # in CSV all is text
            user=record.get("user", "local"),
            tenant=record.get("tenant"),
            tools=record.get("tools", ()),
        )
    except InvalidRequest as error:
        raise InvalidRequest(f"{where}: {error.message}", param=error.param, hint=error.hint) from None


def _score(record: Mapping[str, Any], side: str, where: str) -> float | None:
    named = [name for name in SCORES[side] if name in record]
    if len(named) > 1:
        raise InvalidRequest(f"{where}: {named[0]} and {named[1]} mean the same", param=named[1], hint="keep one of them")
    if not named:
        return None
    value = record[named[0]]
    if isinstance(value, str):
        value = _number(value)
    if not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise InvalidRequest(f"{where}: {named[0]} must be a boolean or a number from 0 to 1", param=named[0], hint=HINT)
    return float(value)


def _number(text: str) -> float | bool | None:
    if text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    try:
        return float(text)
    except ValueError:
        return None


def _text(record: Mapping[str, Any], key: str, where: str) -> str | None:
    value = record.get(key)
    if value is None or (isinstance(value, str) and value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidRequest(f"{where}: {key} must be a string that is not empty", param=key)


def _time(record: Mapping[str, Any], where: str) -> float | None:
    value = record.get("time", record.get("timestamp"))
    if value is None:
        return None
    found = value
    if isinstance(value, str):
        found = _moment(value) if (number := _number(value)) is None else number
    if not isinstance(found, int | float) or isinstance(found, bool) or not abs(found) <= MAX_TIME:  # NaN neither
        raise InvalidRequest(f"{where}: time must be seconds since 1970 or ISO 8601", param="time")
    return float(found)


_ISO = re.compile(r"(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?)(?:Z|([+-])(\d{2}):?(\d{2}))?")


def _moment(text: str) -> float | None:
    """Seconds since 1970 of an ISO 8601 time; without a zone it is UTC. None when it is no such time."""
    found = _ISO.fullmatch(text.strip())
    if found is None:
        return None
    local, sign, hours, minutes = found.groups()
    try:
        seconds = float(np.datetime64(local, "us").astype(np.int64)) / 1e6
    except ValueError:  # the 30th of February
        return None
    return seconds if sign is None else seconds - (1 if sign == "+" else -1) * 60 * (60 * int(hours) + int(minutes))
