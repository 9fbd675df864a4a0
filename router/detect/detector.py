"""What a detector is: it looks at one text and says what stands where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .finding import Finding
from .scan import Scan


class Detector(Protocol):
    """`find` returns findings of `kinds` only, made by `scan.finding` or placed in `scan.written`. To raise is to call the text
    unreadable. A detector must not keep or log any text.

    It may also say `max_characters`: a longer text is not given to it, but taken as unreadable.
    """

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> tuple[str, ...]: ...

    def find(self, scan: Scan) -> list[Finding]: ...


@dataclass(frozen=True, slots=True)
class Rule:
    """A detector of ours: linear in the text, with bounded repeats and at most MAX_CANDIDATES validations. It needs no deadline."""

    name: str
    kinds: tuple[str, ...]
    find: Callable[[Scan], list[Finding]]
