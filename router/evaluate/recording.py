"""A recording, and what another policy would have made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...shared_protocol.errors import InvalidRequest
from ...shared_protocol.json_lines import lines_in
from ..policy.policy import Policy
from ..record import NAMES, Again, Record, decode, redecide
from .figure import Figure

MAX_BYTES = 2**30


@dataclass(frozen=True, slots=True)
class Replayed:
    """`changes`: (record, what the policy says now), where the route differs. `blind`: rules over what no recording keeps."""

    rows: int
    again: tuple[Again, ...]
    changes: tuple[tuple[Record, Again], ...]
    moves: Mapping[str, int]
    causes: Mapping[str, int]
    other_policies: int  # records of another policy than the one asked
    blind: tuple[str, ...]

    @property
    def changed(self) -> float:
        return len(self.changes) / self.rows


def read_records(path: str | Path) -> list[Record]:
    """Raises NotFound, or InvalidRequest that names the line."""
    found = [decode(line, where) for where, line in lines_in(path, MAX_BYTES, hint="name a recording")]
    if not found:
        raise InvalidRequest(f"{Path(path).name} holds no records", hint="name a file that record= or `hybrid route record` wrote")
    return found


def replay_records(records: Sequence[Record], policy: Policy) -> Replayed:
    """`records`: at least one."""
    again = tuple(redecide(record, policy) for record in records)
    changes = tuple((record, now) for record, now in zip(records, again, strict=True) if record.route != now.route)
    return Replayed(
        rows=len(records),
        again=again,
        changes=changes,
        moves=dict(Counter(f"{record.route} -> {now.route}" for record, now in changes).most_common()),
        causes=dict(Counter(f"{record.rule} -> {now.rule}" for record, now in changes).most_common()),
        other_policies=sum(record.policy != policy.hash for record in records),
        blind=tuple(one.rule.name for one in policy.compiled_rules if set(one.when.names) & set(NAMES)),
    )


def cloud_share(routes: Sequence[str]) -> float:
    """A cascade counts as a call: whether it was handed over is not recorded."""
    return sum(route in ("cloud", "cascade", "speculative") for route in routes) / len(routes)


def figures_of(found: Replayed) -> dict[str, Figure]:
    """What the gates of a replay may name."""
    routes = [one.route for one in found.again]
    return {"changed": found.changed, "cloud_share": cloud_share(routes), "refuse_share": routes.count("refuse") / len(routes)}
