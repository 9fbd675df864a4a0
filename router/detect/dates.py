"""Dates. They are reported, and public unless a policy says otherwise: hardly a text is without one."""

from __future__ import annotations

import re

from .finding import Finding
from .scan import Scan

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_SHORT = "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_NUMBERS = re.compile(
    r"(?<!\d)(?:(?:1[6-9]|20)\d\d([./-])(?:1[0-2]|0?[1-9])\1(?:3[01]|[12]\d|0?[1-9])"  # 2024-03-05
    r"|(?:3[01]|[12]\d|0?[1-9])([./-])(?:3[01]|[12]\d|0?[1-9])\2(?:(?:1[6-9]|20)\d\d|\d\d))(?!\d)"  # 5.3.2024, 3/5/24
)
_TIME = re.compile(r"[T ]\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?(?!\w)")
_DAY, _YEAR = r"\d{1,2}(?:st|nd|rd|th)?", r"(?:,? (?:1[6-9]|20)\d\d)?"
_NAMED = re.compile(
    rf"(?<!\w)(?:{_MONTHS}|(?:{_SHORT})\.?) {_DAY}{_YEAR}(?!\w)"  # March 5th, 2024
    rf"|(?<!\w){_DAY}\.? (?:of )?(?:{_MONTHS}|{_SHORT})\.?{_YEAR}(?!\w)"  # 5 March 2024
    rf"|(?<!\w)(?:{_MONTHS}),? (?:1[6-9]|20)\d\d(?!\w)"  # March 2024
)


def find_dates(scan: Scan) -> list[Finding]:
    """Days with a month and a year, in digits, or with the month's English name; a time that follows belongs to it. Years alone, and
    days of the week, are none."""
    text = scan.text
    found = []
    for chain in scan.chains:
        at, limit = chain.span()
        while limit - at >= 6 and (match := _NUMBERS.search(text, at, limit)):
            at = match.end()
            real = match[1] or match[2] != "." or match[0][-4:].isdigit()  # 1.2.34 is a version
            if real:
                time = _TIME.match(text, at)
                at = max(at, time.end()) if time else at
                found.append(scan.finding("date", match.start(), at))
    return found + [scan.finding("date", *match.span()) for match in _NAMED.finditer(scan.lower)]
