"""E-mail addresses and addresses of machines."""

from __future__ import annotations

import ipaddress
import re

from .scan import Scan

# From the @ on (in an address of the web it is %40); every repeat is bounded, so the work per @ is too.
_DOMAIN = re.compile(r"@(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_]{2,24}(?!_{0,3}[^\W_])")  # underscores end _emphasis_
_LOCAL_END = re.compile(r"[\w.!#$%&'*+/=?^`{|}~\"-]")
_SPELT = re.compile(
    r"\w ?[\[({] ?at ?[\])}] ?\w[\w-]{0,62} ?(?:\.|[\[({] ?dot ?[\])}]) ?[a-z]{2,24}|\w at \w[\w-]{0,62} dot (?:[a-z]{2,3}|info)(?!\w)"
)
_NAME = re.compile(r"[\w.+-]")
_PATH = re.compile(r"@[\w.-]{1,253}[:/]")
_IPV4 = re.compile(r"(?<![^\W_])(?<!\.)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?!_{0,3}[^\W_]|\.\d)")
_IPV6_RUN = re.compile(r"[0-9A-Fa-f:]+(?:(?:\.\d{1,3}){3})?")
_LONGEST = 45  # characters of an IPv6 address
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


_SPELT_ENDS = ("at)", "at]", "at}", "at )", "at ]", "at }", " dot ")


def count_emails(scan: Scan) -> int:
    """E-mail addresses. The part before the @ is only looked at where it ends, since anything may stand there."""
    text = scan.text.replace("%40", "@")
    found = 0
    at = text.find("@", 1)
    while at > 0:
        if _LOCAL_END.match(text, at - 1) and _DOMAIN.match(text, at) and not _is_git(text, at):
            found += 1
        at = text.find("@", at + 1)
    if any(end in text for end in _SPELT_ENDS):
        found += sum(1 for _ in _SPELT.finditer(scan.lower))
    return found


def _is_git(text: str, at: int) -> bool:
    """git@host:path and git@host/path are names of a repository."""
    alone = text.endswith("git", max(0, at - 3), at) and (at < 4 or not _NAME.match(text, at - 4))
    return alone and _PATH.match(text, at) is not None


def count_addresses(scan: Scan) -> int:
    """IPv4 and IPv6 addresses that may name a machine: no loopback, netmask, multicast or unspecified ones."""
    text = scan.text
    found = 0
    for chain in scan.chains:
        if chain[0].count(".") >= 3:
            start, end = chain.span()
            found += sum(_names_a_machine_v4(match[0]) for match in _IPV4.finditer(text, start, end + 2) if match.end() <= end)
    return found + _count_v6(text)


def _count_v6(text: str) -> int:
    """Looks at each run of hexadecimal digits and colons once, found by its first colon."""
    if "::" not in text and text.count(":") < 6:
        return 0
    found = 0
    at = text.find(":")
    while at >= 0:
        start = at
        while start > 0 and at - start < 5 and text[start - 1] in _HEXADECIMAL:
            start -= 1
        run = _IPV6_RUN.match(text, start)
        assert run is not None
        if len(run[0]) <= _LONGEST and not _touches_a_word(text, *run.span()) and _names_a_machine_v6(run[0]):
            found += 1
        at = text.find(":", run.end())
    return found


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
