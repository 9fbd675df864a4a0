"""`hybrid route feedback`: correct a learned router by what its answers turned out to be, within limits, and take it back."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec

from ....router.learned import feedback as corrections
from ....router.learned.feedback import History, Observed
from ....router.learned.store import load, save
from ....shared_protocol.bounded_file import read_at_most
from ....shared_protocol.errors import Conflict, NotFound
from ....shared_protocol.json_lines import line_as, lines_in
from ....shared_protocol.whole_file import write_whole
from ..output import json_option, print_json

MAX_INPUT = 256_000_000  # bytes


class _Row(msgspec.Struct, frozen=True):
    prompt: str
    side: Literal["edge", "cloud"]
    score: Annotated[float, msgspec.Meta(ge=0, le=1)]


@click.command()
@click.option("--model", "file", required=True, type=click.Path(dir_okay=False), help="The learned router, as it was trained.")
@click.option("--history", "log", required=True, type=click.Path(dir_okay=False), help="Its corrections so far; made if there are none.")
@click.option("--input", "rows", type=click.Path(dir_okay=False), help="Observations, a JSON object a line: prompt, side, score.")
@click.option("--back-to", type=click.IntRange(min=0), help="Instead: as it was in this version; 0 is as trained.")
@click.option("--out", required=True, type=click.Path(dir_okay=False), help="Write the corrected router to this new file.")
@click.option("--date", "when", type=click.DateTime(["%Y-%m-%d"]), help="Written into the history; today if it is not given.")
@json_option
def feedback(file: str, log: str, rows: str | None, back_to: int | None, out: str, when: datetime | None, as_json: bool) -> None:
    """Correct a learned router by observed scores, or go back to an earlier version.

    An observation is what one side made of a prompt: {"prompt": "...", "side": "edge", "score": 0.0}. Each moves the router a little, all
    together never far, and the history keeps no word of a prompt. Name the new file in the policy to use it.
    """
    if (rows is None) == (back_to is None):
        raise click.UsageError("give either --input FILE or --back-to VERSION")
    if Path(out).exists():
        raise Conflict(f"{out} is there already", hint="nothing is overwritten: name a new file")
    base = load(file)
    history = _history(log, History(base))
    day = (when.date() if when else date.today()).isoformat()
    if rows is not None:
        history = corrections.correct(history, _observed(rows), when=day)
    else:
        assert back_to is not None
        history = corrections.roll_back(history, back_to, when=day)
    made = save(corrections.corrected(history), out)
    write_whole(log, corrections.to_bytes(history))
    last = history.versions[-1]
    if as_json:
        print_json({"out": out, "id": made.id, "version": last.number, "what": last.what, "error": last.error, "drift": last.drift})
    else:
        click.echo(f"version {last.number}: {last.what}; error {last.error:.3f} before, moved {last.drift:.3f} of {history.limits.drift:g}")
        click.echo(f"{out} is the router of this version; name it in a policy: [learned] model")


def _history(log: str, empty: History) -> History:
    try:
        data = read_at_most(log, corrections.MAX_BYTES)
    except FileNotFoundError:
        return empty
    except OSError as error:
        raise NotFound(f"{log}: {error.strerror}", hint="name a history that hybrid route feedback has written") from None
    return corrections.from_bytes(data, empty.base)


def _observed(rows: str) -> list[Observed]:
    wanted = "prompt, side (edge or cloud), score (0 to 1)"
    lines = lines_in(rows, MAX_INPUT, hint="name a file with a JSON object a line")
    found = [line_as(_Row, line, where, what="answer", hint=wanted) for where, line in lines]
    return [Observed(row.prompt, row.side, row.score) for row in found]
