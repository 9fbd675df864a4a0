"""Numbers that name a device or a purse: network cards, and addresses of crypto currencies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import bitcoin

from .budget import Budget
from .finding import Finding
from .scan import Scan

_MAC = re.compile(r"(?<![0-9A-Za-z:-])[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![0-9A-Za-z]|[:-][0-9A-Fa-f])")
_BASE58 = re.compile(r"(?<![A-Za-z0-9])[13][1-9A-HJ-NP-Za-km-z]{25,34}(?![A-Za-z0-9])")
_BECH32 = re.compile(r"(?<![A-Za-z0-9])bc1[02-9ac-hj-np-z]{11,71}(?![A-Za-z0-9])")
_ETHEREUM = re.compile(r"(?<![A-Za-z0-9])0x[0-9A-Fa-f]{40}(?![A-Za-z0-9])")


def find_macs(scan: Scan) -> list[Finding]:
    """Addresses of network cards: no broadcast, no zeros."""
    text = scan.text
    found = []
    for mark in ":-":
        at = text.find(mark, 2)
        while at >= 0:
            end = at + 1
            if text[at + 3 : at + 4] == mark and (match := _MAC.match(text, at - 2)):
                end = match.end()
                if len(set(re.sub("[:-]", "", match[0].lower()))) > 1:
                    found.append(scan.finding("mac", *match.span()))
            at = text.find(mark, end)
    return found


def find_wallets(scan: Scan) -> list[Finding]:
    """Bitcoin's addresses by their check sums, Ethereum's by their shape: its check is in the case of letters, which few keep."""
    budget = Budget()
    spans = []
    for match in _candidates(scan):
        budget.spend()
        if match[0].startswith("0x") or bitcoin.is_valid(match[0]):
            spans.append(match.span())
    return [scan.finding("wallet", *span) for span in spans]


def _candidates(scan: Scan) -> Iterator[re.Match[str]]:
    text = scan.text
    for chain in scan.chains:
        start = chain.start()
        if text[start] in "13" and start + 26 <= len(text) and (match := _BASE58.match(text, start)):
            yield match
    for lead, pattern in (("bc1", _BECH32), ("BC1", _BECH32), ("0x", _ETHEREUM)):
        at = text.find(lead)
        while at >= 0:
            if match := pattern.match(text, at):
                yield match
            at = text.find(lead, at + 3)
