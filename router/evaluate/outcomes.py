"""What both models made of a prompt: the only thing that a router can be trained on and measured by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...shared_protocol.errors import InvalidRequest
from .rows import HINT, Row, group_of, read_rows


@dataclass(frozen=True, slots=True)
class Outcome:
    """`weak` and `strong`: scores 0..1 of the device's and of the cloud's model. `group`: equal for equal prompts."""

    id: str
    prompt: str = field(repr=False)
    weak: float
    strong: float
    group: str = ""

    def __post_init__(self) -> None:
        if not self.group:
            object.__setattr__(self, "group", group_of(self.prompt))

    @property
    def gain(self) -> float:
        """What calling the strong model brings, -1..1."""
        return self.strong - self.weak


def outcome_of(row: Row) -> Outcome | None:
    """None for a row without scores."""
    if row.weak is None or row.strong is None:
        return None
    return Outcome(row.id, row.prompt, row.weak, row.strong, row.group)


def outcomes_of(rows: Sequence[Row]) -> list[Outcome]:
    return [outcome for row in rows if (outcome := outcome_of(row)) is not None]


def read_outcomes(path: str | Path) -> list[Outcome]:
    """The outcomes of a file as `rows` describes it. Raises NotFound, or InvalidRequest naming the line of a row without scores."""
    rows = read_rows(path)
    for row in rows:
        if row.weak is None:
            raise InvalidRequest(f"{Path(path).name}:{row.line}: no scores of the two models", param="weak", hint=HINT)
    return outcomes_of(rows)
