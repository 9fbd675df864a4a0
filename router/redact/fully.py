"""Redacting by a policy, and looking again: either nothing is left that may not leave the device, or nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence

from ..detect.finding import Finding, resolve
from ..detect.search import search
from ..policy.tables import PrivacyPolicy, verdict_of
from ..request import RouteRequest
from .mapping import RedactionFailed, RedactionMapping
from .redact import Redacted, redact
from .restore import Matcher


def redact_fully(request: RouteRequest, privacy: PrivacyPolicy, mapping: RedactionMapping) -> Redacted | None:
    """None when a value could not be replaced, for whatever reason: the request must stay on the device. Never raises."""
    try:
        redacted = redact(request, lambda texts: _replaceable(texts, privacy), mapping)
        return redacted if _nothing_left([*redacted.request.texts(), *redacted.request.readings()], privacy, mapping) else None
    except Exception:  # an error may hold words of the request, so nothing of it is kept
        return None


def _replaceable(texts: Sequence[str], privacy: PrivacyPolicy) -> list[list[Finding]]:
    found = search(texts, privacy).findings
    verdicts = {verdict_of(one.kind, privacy) for here in found for one in here}
    if not verdicts <= {"public", "redact"}:
        raise RedactionFailed("something was found that no placeholder may stand for")
    return [resolve(one for one in here if verdict_of(one.kind, privacy) == "redact") for here in found]


def _nothing_left(texts: Sequence[str], privacy: PrivacyPolicy, mapping: RedactionMapping) -> bool:
    """Whether all that a second search finds is public. What a recogniser sees in a placeholder itself is ours, and no value."""
    placeholders = Matcher(mapping.values())
    for text, found in zip(texts, search(texts, privacy).findings, strict=True):
        left = [one for one in found if verdict_of(one.kind, privacy) != "public"]
        ours = [(match.start, match.end) for match in placeholders.all(text)] if left else []
        if any(one.kind == "unreadable" or not any(start <= one.start and one.end <= end for start, end in ours) for one in left):
            return False
    return True
