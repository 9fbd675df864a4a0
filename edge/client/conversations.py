"""What privacy remembers of a conversation: how private it has been, and what its placeholders stand for.

Privacy is monotone: what was private once stays so, even when a later turn no longer repeats it. A value keeps its placeholder.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...router.policy.policy import Policy
from ...router.privacy import clear
from ...router.redact.mapping import RedactionMapping
from ...router.request import RouteRequest
from ...router.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Remembered:
    """For one call. `named`: the conversation goes on after it."""

    floor: Verdict
    redaction: RedactionMapping
    named: bool

    def end_of_call(self) -> None:
        if not self.named:
            self.redaction.forget()


class Conversations:
    """The strictest verdict of each named conversation, and its placeholders. Public ones are not stored, so a client may have any
    number of those."""

    def __init__(self) -> None:
        self._floors: dict[str, Verdict] = {}
        self._redactions: dict[str, RedactionMapping] = {}

    def enter(self, name: str | None, request: RouteRequest, policy: Policy) -> Remembered:
        """The strictest verdict so far, `request` included. Call it before anything is awaited: what comes while the request is
        still waiting, or after it was cancelled or has failed, is a later turn all the same."""
        if name is None:
            return Remembered("public", RedactionMapping(), named=False)
        redaction = self._redactions.get(name)
        redaction = RedactionMapping() if redaction is None else redaction
        verdict = clear(request, policy, self._floors.get(name, "public"), redaction).assessment.verdict
        if verdict != "public":
            self._floors[name] = verdict
        if verdict == "redact":
            self._redactions[name] = redaction
        elif name in self._redactions:  # only the device answers from now on
            self._redactions.pop(name).forget()
        return Remembered(verdict, redaction, named=True)

    def forget(self, name: str) -> None:
        """The conversation has ended; the name may be used for another one."""
        self._floors.pop(name, None)
        redaction = self._redactions.pop(name, None)
        if redaction is not None:
            redaction.forget()

    def forget_all(self) -> None:
        for name in [*self._redactions]:
            self.forget(name)
