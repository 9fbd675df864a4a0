"""Addresses of the web: what has a scheme, begins with www., or ends in one of the oldest domains."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .finding import Finding
from .scan import Scan

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,15}\Z")
_REST = re.compile(r"[^\s<>\"'`{}|\\^\x00-\x1f]{1,2048}")
_PATH = re.compile(r"(?::\d{1,5})?(?:[/?#][^\s<>\"'`{}|\\^\x00-\x1f]{0,2048})?")
_HOST_BACKWARDS = re.compile(r"(?:[a-z0-9-]{1,63}\.){0,4}[a-z0-9-]{0,62}[a-z0-9](?![\w.@/%-])")
_ENDINGS = (".com", ".org", ".net", ".edu", ".gov")
_TAIL = ".,;:!?*_~'\")]}"  # ends a sentence or its emphasis, not an address


def find_urls(scan: Scan) -> list[Finding]:
    """Whole addresses, with query and fragment. Paths of files and names without one of the endings are none."""
    text = scan.text
    spans = [*_with_scheme(text), *_with_www(text, scan.lower), *_bare(text, scan.lower)]
    return [scan.finding("url", *span) for span in sorted(spans)]


def _with_scheme(text: str) -> Iterator[tuple[int, int]]:
    at = text.find("://", 1)
    while at >= 0:
        end = at + 3
        first = text[end : end + 1]
        scheme = _SCHEME.search(text, max(0, at - 16), at) if first.isalnum() or first == "[" else None
        if scheme and (rest := _REST.match(text, end)):
            end = _without_tail(text, end + 1, rest.end())
            yield scheme.start(), end
        at = text.find("://", end)


def _with_www(text: str, lower: str) -> Iterator[tuple[int, int]]:
    at = lower.find("www.")
    while at >= 0:
        rest = _REST.match(text, at)
        end = _without_tail(text, at + 4, rest.end() if rest else at + 4)
        if "." in text[at + 4 : end] and (at == 0 or not (text[at - 1].isalnum() or text[at - 1] in "./@-_")):
            yield at, end
        at = lower.find("www.", end)


def _bare(text: str, lower: str) -> Iterator[tuple[int, int]]:
    for ending in _ENDINGS:
        at = lower.find(ending)
        while at >= 0:
            end = at + len(ending)
            goes_on = lower[end : end + 1].isalnum() or lower[end : end + 1] in ("-", "_", "@") or _ends_later(lower, end)
            goes_on = goes_on or not (text[at:end].islower() or text[at:end].isupper())
            host = None if goes_on else _HOST_BACKWARDS.match(lower[max(0, at - 255) : at][::-1])
            if host and not lower.startswith("www.", at - host.end()):
                path = _PATH.match(text, end)
                assert path is not None
                yield at - host.end(), _without_tail(text, end, path.end())
            at = lower.find(ending, end)


def _ends_later(lower: str, end: int) -> bool:
    """example.com.br goes on, "at example.com." does not."""
    return lower[end : end + 1] == "." and lower[end + 1 : end + 2].isalnum()


def _without_tail(text: str, start: int, end: int) -> int:
    """The end of an address that begins before `start`; a bracket belongs to it when it was opened in it."""
    while end > start and text[end - 1] in _TAIL:
        if text[end - 1] == ")" and text.count(")", start, end) <= text.count("(", start, end):
            break
        end -= 1
    return end
