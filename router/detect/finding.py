"""Something that a detector has found: what it is, and where it stands. It holds none of the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`start` to `end`, in characters of the text that was searched, as it was written (before folding): a whole value."""

    kind: str
    start: int
    end: int


def resolve(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that do not overlap, in the order of the text, and cover every character that `findings` cover.

    Where some overlap, one stands for all of them: from the first's start to the last's end, of the kind of the longest, then of the
    earliest, then of the first in the alphabet. To keep the longest alone would leave the ends of the others in the text.
    """
    resolved: list[Finding] = []
    best = 0  # characters of the longest that the last one stands for
    for one in sorted(findings, key=lambda f: (f.start, f.start - f.end, f.kind)):
        length = one.end - one.start
        if resolved and one.start < resolved[-1].end:
            last = resolved[-1]
            resolved[-1] = Finding(one.kind if length > best else last.kind, last.start, max(last.end, one.end))
            best = max(best, length)
        else:
            resolved.append(one)
            best = length
    return resolved
