"""E-mail addresses and addresses of machines."""

from __future__ import annotations

import ipaddress
import re

# from the @ on; every repeat is bounded, so the work per @ is too
_DOMAIN = re.compile(r"@(?:[^\W_](?:[\w-]{0,62})\.){1,8}[^\W\d_]{2,24}(?![\w])")
_LOCAL_END = re.compile(r"[\w.!#$%&'*+/=?^`{|}~\"-]")
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{3,40}(?:(?:\.\d{1,3}){3})?(?![\w:])")


def count_emails(text: str) -> int:
    """E-mail addresses; the part before the @ is only looked at where it ends, since any word may stand there."""
    found = 0
    at = text.find("@", 1)
    while at > 0:
        if _LOCAL_END.match(text[at - 1]) and _DOMAIN.match(text, at) and not text.endswith("git", max(0, at - 3), at):
            found += 1
        at = text.find("@", at + 1)
    return found


def count_addresses(text: str) -> int:
    """IPv4 and IPv6 addresses that name a machine: no loopback, netmask, multicast or unspecified ones."""
    found = 0
    if text.count(".") >= 3:
        found += sum(_names_a_machine_v4(match[0]) for match in _IPV4.finditer(text))
    if text.count(":") >= 2:
        found += sum(_names_a_machine_v6(match[0]) for match in _IPV6.finditer(text))
    return found


def _names_a_machine_v4(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return 1 <= address.packed[0] < 224 and not address.is_loopback


def _names_a_machine_v6(text: str) -> bool:
    if "::" not in text and text.count(":") not in (6, 7):
        return False
    if text.count(":") < 3 and not any(c.isdigit() for c in text):
        return False  # a::b is C++
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)
