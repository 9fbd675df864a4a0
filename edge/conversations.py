"""Privacy is monotone over a conversation: what was private once stays so, even when a later turn no longer repeats it."""

from __future__ import annotations

from ..router.verdict import Verdict, strictest


class Conversations:
    """The strictest verdict of each named conversation. Public ones are not stored, so a client may have any number of those."""

    def __init__(self) -> None:
        self._floors: dict[str, Verdict] = {}

    def floor(self, name: str | None) -> Verdict:
        return "public" if name is None else self._floors.get(name, "public")

    def note(self, name: str | None, verdict: Verdict) -> None:
        if name is not None and verdict != "public":
            self._floors[name] = strictest((self.floor(name), verdict))

    def forget(self, name: str) -> None:
        """The conversation has ended; the name may be used for another one."""
        self._floors.pop(name, None)
