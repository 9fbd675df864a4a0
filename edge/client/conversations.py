"""Privacy is monotone over a conversation: what was private once stays so, even when a later turn no longer repeats it."""

from __future__ import annotations

from ...router.policy import Policy
from ...router.privacy import assess
from ...router.request import RouteRequest
from ...router.verdict import Verdict


class Conversations:
    """The strictest verdict of each named conversation. Public ones are not stored, so a client may have any number of those."""

    def __init__(self) -> None:
        self._floors: dict[str, Verdict] = {}

    def enter(self, name: str | None, request: RouteRequest, policy: Policy) -> Verdict:
        """The strictest verdict so far, `request` included. Call it before anything is awaited: what comes while the request is
        still waiting, or after it was cancelled or has failed, is a later turn all the same."""
        if name is None:
            return "public"
        verdict = assess(request, policy, self._floors.get(name, "public")).verdict
        if verdict != "public":
            self._floors[name] = verdict
        return verdict

    def forget(self, name: str) -> None:
        """The conversation has ended; the name may be used for another one."""
        self._floors.pop(name, None)
