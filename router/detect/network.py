"""E-mail addresses and addresses of machines."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from .finding import Finding
from .scan import Scan

# From the @ on (in an address of the web it is %40); every repeat is bounded, so the work per @ is too.
_DOMAIN = re.compile(r"(?:@|%40)(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_]{2,24}(?!_{0,3}[^\W_])")  # underscores end _emphasis_
_LOCAL_END = re.compile(r"[\w.!#$%&'*+/=?^`{|}~\"-]")
_SPELT = re.compile(
    r"\w ?[\[({] ?at ?[\])}] ?\w[\w-]{0,62} ?(?:\.|[\[({] ?dot ?[\])}]) ?[a-z]{2,24}|\w at \w[\w-]{0,62} dot (?:[a-z]{2,3}|info)(?!\w)"
)
# The part before the @, read backwards; what divides a query or sets off a word is none of it.
_LOCAL = re.compile(r"[\w.!#$%'*+^~\"-]{0,256}")
_NAME = re.compile(r"[\w.+-]")
_PATH = re.compile(r"@[\w.-]{1,253}[:/]")
_IPV4 = re.compile(r"(?<![^\W_])(?<!\.)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?!_{0,3}[^\W_]|\.\d)")
_IPV6_RUN = re.compile(r"[0-9A-Fa-f:]+(?:(?:\.\d{1,3}){3})?")
_LONGEST = 45  # characters of an IPv6 address
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


_SPELT_ENDS = ("at)", "at]", "at}", "at )", "at ]", "at }", " dot ")


def find_emails(scan: Scan) -> list[Finding]:
    """E-mail addresses. Whether there is a part before the @ is only looked at where it ends, since anything may stand there."""
    text = scan.text
    found = []
    for sign in ("@", "%40"):
        at = text.find(sign, 1)
        while at > 0:
            if _LOCAL_END.match(text, at - 1) and (domain := _DOMAIN.match(text, at)) and not _is_git(text, at):
                found.append(scan.finding("email", _local_start(text, at, domain.end()), domain.end()))
            at = text.find(sign, at + 1)
    if any(end in text for end in _SPELT_ENDS):
        spans = (match.span() for match in _SPELT.finditer(scan.lower))
        found += [scan.finding("email", _local_start(text, start + 1, end), end) for start, end in spans]
    return found


def _local_start(text: str, at: int, end: int) -> int:
    """Where the part that ends at `at` begins; a mark on both sides of the address is _emphasis_ or a 'quotation'."""
    before = _LOCAL.match(text[max(0, at - 256) : at][::-1])
    start = at - (before.end() if before else 0)
    while start < at - 1 and text[start] in "_*'\"" and text[end : end + 1] == text[start]:
        start, end = start + 1, end + 1
    return min(start, at - 1)


def _is_git(text: str, at: int) -> bool:
    """git@host:path and git@host/path are names of a repository."""
    alone = text.endswith("git", max(0, at - 3), at) and (at < 4 or not _NAME.match(text, at - 4))
    return alone and _PATH.match(text, at) is not None


def find_addresses(scan: Scan) -> list[Finding]:
    """IPv4 and IPv6 addresses that may name a machine: no loopback, netmask, multicast or unspecified ones."""
    text = scan.text
    found = []
    for chain in scan.chains:
        if chain[0].count(".") >= 3:
            start, end = chain.span()
            runs = (run for run in _IPV4.finditer(text, start, end + 2) if run.end() <= end)
            found += [scan.finding("ip", *run.span()) for run in runs if _names_a_machine_v4(run[0])]
    return found + [scan.finding("ip", *span) for span in _v6_in(text)]


def _v6_in(text: str) -> Iterator[tuple[int, int]]:
    """Looks at each run of hexadecimal digits and colons once, found by its first colon."""
    if "::" not in text and text.count(":") < 6:
        return
    at = text.find(":")
    while at >= 0:
        start = at
        while start > 0 and at - start < 5 and text[start - 1] in _HEXADECIMAL:
            start -= 1
        run = _IPV6_RUN.match(text, start)
        assert run is not None
        if len(run[0]) <= _LONGEST and not _touches_a_word(text, *run.span()) and _names_a_machine_v6(run[0]):
            yield run.span()
        at = text.find(":", run.end())


def _touches_a_word(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return any(character.isalnum() or character == "_" for character in around)


def _names_a_machine_v4(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(".".join(part.lstrip("0") or "0" for part in text.split(".")))
    except ValueError:
        return False
    return 1 <= address.packed[0] < 224 and not address.is_loopback


def _names_a_machine_v6(text: str) -> bool:
    colons = text.count(":")
    if "::" not in text and colons not in (6, 7):
        return False
    if colons < 3 and not any(c.isdigit() for c in text):
        return False  # a::b is C++
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)
