"""Redaction with a secret that is the same at every run, and a search that finds what a test says."""

from __future__ import annotations

import re
from collections.abc import Callable

from hybrid.router.detect.finding import Finding
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.redact.redact import Redacted, redact
from hybrid.router.redact.restore import Part, Restorer
from hybrid.router.request import RouteRequest

MAIL = re.compile(r"[\w.]+@[\w.]+\w")


def mapping(secret: int = 1) -> RedactionMapping:
    return RedactionMapping(lambda size: bytes([secret] * size))


def mails(text: str) -> list[Finding]:
    return [Finding("email", *match.span()) for match in MAIL.finditer(text)]


def redacted(text: str, into: RedactionMapping, find: Callable[[str], list[Finding]] = mails) -> str:
    content = redact_all(RouteRequest.of(text), into, find).request.messages[0].content
    assert content is not None
    return content


def redact_all(request: RouteRequest, into: RedactionMapping, find: Callable[[str], list[Finding]] = mails) -> Redacted:
    return redact(request, lambda texts: [find(text) for text in texts], into)


def restored_in(chunks: list[str], from_: RedactionMapping) -> list[str]:
    """What is shown after each chunk, and at the end."""
    restorer = Restorer(from_.values())
    parts: list[list[Part]] = [restorer.push(chunk) for chunk in chunks] + [restorer.finish()]
    assert "".join(part.source for some in parts for part in some) == "".join(chunks)
    return ["".join(part.shown for part in some) for some in parts]
