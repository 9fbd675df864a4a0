"""A buffer: some bytes that are needed for some steps.

Time is counted in steps, and a buffer is live in [lower, upper). Space is counted in bytes. A buffer owns its bytes up to the next multiple
of its alignment (`extent`): a transfer moves whole lines, so nobody else may lie in the last, and a bound over extents is honest.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import InvalidBuffers

COLUMNS = ("id", "lower", "upper", "size")


@dataclass(frozen=True, slots=True)
class Buffer:
    """`size` bytes, live in the steps [lower, upper), at a multiple of `alignment`."""

    id: str
    lower: int
    upper: int
    size: int
    alignment: int = 1

    def __post_init__(self) -> None:
        if self.lower < 0 or self.upper <= self.lower:
            raise InvalidBuffers(f"buffer {self.id} lives in [{self.lower}, {self.upper})", ids=(self.id,), hint="needs 0 <= lower < upper")
        if self.size <= 0 or self.alignment <= 0:
            raise InvalidBuffers(
                f"buffer {self.id} has {self.size} bytes with alignment {self.alignment}", ids=(self.id,), hint="both must be at least 1"
            )

    @property
    def extent(self) -> int:
        """Bytes that it owns: its size up to the next multiple of its alignment."""
        return -(-self.size // self.alignment) * self.alignment


def by_id(buffers: Iterable[Buffer]) -> dict[str, Buffer]:
    """The buffers under their ids, in the order given. Raises InvalidBuffers when two share one."""
    found: dict[str, Buffer] = {}
    for buffer in buffers:
        if buffer.id in found:
            raise InvalidBuffers(f"two buffers are called {buffer.id}", ids=(buffer.id,), hint="ids must differ")
        found[buffer.id] = buffer
    return found


def known(id: str, buffers: Mapping[str, Buffer], asked_by: str) -> Buffer:
    """The buffer of that id. Raises InvalidBuffers when there is none; `asked_by` says who named it."""
    if id not in buffers:
        raise InvalidBuffers(f"{asked_by} names buffer {id}, which is not among the {len(buffers)} given", ids=(id,))
    return buffers[id]


def read_csv(path: Path, alignment: int = 1) -> list[Buffer]:
    """Buffers from lines `id,lower,upper,size` under that heading, the form of MiniMalloc's benchmarks; further columns are refused."""
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidBuffers(f"{path} cannot be read: {error}") from None
    if not rows or tuple(cell.strip() for cell in rows[0]) != COLUMNS:
        raise InvalidBuffers(
            f"{path} begins with {','.join(rows[0]) if rows else 'nothing'}", hint=f"needs the heading {','.join(COLUMNS)}"
        )
    buffers = []
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        try:
            id, lower, upper, size = row
            buffers.append(Buffer(id.strip(), int(lower), int(upper), int(size), alignment))
        except ValueError:
            raise InvalidBuffers(f"{path}, line {number}: {','.join(row)[:80]}", hint="needs an id and three whole numbers") from None
        except InvalidBuffers as error:
            raise InvalidBuffers(f"{path}, line {number}: {error.message}", ids=error.ids, hint=error.hint) from None
    return list(by_id(buffers).values())
