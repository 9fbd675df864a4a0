"""How much of one text is validated. Candidates are cheap to find and dear to check, so a text with too many of them is not judged."""

from __future__ import annotations

MAX_CANDIDATES = 64


class TooManyCandidates(Exception):
    """More candidates than are validated: the text is unreadable."""


class Budget:
    """Counts what is validated."""

    def __init__(self) -> None:
        self.left = MAX_CANDIDATES

    def spend(self) -> None:
        if self.left == 0:
            raise TooManyCandidates
        self.left -= 1
