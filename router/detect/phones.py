"""Telephone numbers. They carry no check digit, so shape and context must tell them from order numbers, dates and hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .budget import Budget
from .finding import Finding
from .phone_formats import LONGEST, SHORTEST, is_written_as_a_phone
from .scan import Scan, glued_after, glued_before

_DIGITS = re.compile(r"\d+")
_CONTEXT = re.compile(
    r"(?i)\b(?:phones?|call(?:ed|ing|s)?|tel(?:ephone)?s?|mobile|cell(?:phone)?|fax|contact|whatsapp|sms|text me|dial|ring|reach|hotline"
    r"|landline|answering)\b"
)
_NEXT_TO_IT = re.compile(
    r"(?i)\b(?:phone|call|tel(?:ephone)?|mobile|cell|fax|whatsapp|sms|text|dial|hotline|landline)"
    r"(?: (?:me|us|number|no\.?|nr\.?|is|at|on|now)){0,3}\W{0,3}\Z"
)
_BEHIND_IT = re.compile(r"(?i)[ \t,;:(-]{1,3}(?:office|fax|mobile|cell|phone|tel|landline)\b(?=[ \t]*(?:[\n,;.)\\]|\Z))")
_OTHER_CONTEXT = re.compile(
    r"(?i)\b(?:order|invoice|tracking|ticket|serial|reference|ref|id|isbn|timestamp|population)\b\W{0,4}(?:no|number|nr)?\W{0,4}$"
)
_DATE = re.compile(r"(?:\d{1,2}[ ./-]\d{1,2}[ ./-](?:19|20)\d\d|(?:19|20)\d\d[ ./-]\d{1,2}[ ./-]\d{1,2})(?!\d)")
_DOTTED = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")  # a machine's address or a version
_GUID = re.compile(r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_SUM = re.compile(r"[\w)]\+\(?\Z")  # 1+12345678
_LEAD = re.compile(r"(?:\(\+|\+\(?|\() ?\Z")
_TAIL = re.compile(r"(?i) ?(?:x|ext\.?|#) ?\d{1,6}(?!\w)")
_EXTENSION = re.compile(r"(?i)x|ext|#")


def find_phones(scan: Scan, regions: tuple[str, ...] = ()) -> list[Finding]:
    """International numbers, numbers of a known shape with separators, others beside a word such as "call", and what stands in the groups
    in which one of `regions` writes its numbers."""
    text = scan.text
    budget = Budget()
    spans = [span for chain in scan.chains if chain.end() - chain.start() >= 7 for span in _phones_in(text, chain, regions, budget)]
    spans += [chain.span() for chain in scan.wrapped if _goes_on_in_the_next_line(text, chain)]
    return [scan.finding("phone", *_widened(text, *span)) for span in spans]


def _goes_on_in_the_next_line(text: str, chain: re.Match[str]) -> bool:
    """An international number at the end of a line and the beginning of the next: neither part need be one alone."""
    start = chain.start()
    if text[max(0, start - 1) : start] != "+" or chain[0].count("\n") > 1:
        return False
    here, there = (sum(map(str.isdigit, part)) for part in chain[0].split("\n"))
    return here < 8 <= here + there <= 15


def _phones_in(text: str, chain: re.Match[str], regions: tuple[str, ...], budget: Budget) -> list[tuple[int, int]]:
    start, end = chain.span()
    if glued_before(text, start) or (glued_after(text, end) and not _EXTENSION.match(text, end)):
        return []
    if _DATE.match(chain[0]) or _DOTTED.fullmatch(chain[0]):
        return []
    groups = [match.span() for match in _DIGITS.finditer(text, start, end)]
    lengths = [right - left for left, right in groups]
    digits = sum(lengths)
    if digits < 7 or lengths == [3, 2, 4]:  # as a social security number is written
        return []
    found = [(start, end)] if digits <= 15 and _said_to_be_a_phone(text, start, end, len(groups), digits) else []
    found = found or list(_shaped(text, groups, digits))
    if not found and regions and _may_be_formatted(text, groups, lengths):
        budget.spend()
        if is_written_as_a_phone([text[left:right] for left, right in groups], text[groups[0][1]], regions):
            found = [(start, end)]
    return [] if found and _in_a_guid(text, start) else found


def _may_be_formatted(text: str, groups: list[tuple[int, int]], lengths: list[int]) -> bool:
    """Whether groups of two digits or more have one kind of separator between them."""
    if not (2 <= len(groups) <= 5 and min(lengths) >= 2 and SHORTEST <= sum(lengths) <= LONGEST):
        return False
    return {text[left[1] : right[0]] for left, right in pairwise(groups)} in ({" "}, {"-"}, {"."})


def _shaped(text: str, groups: list[tuple[int, int]], left: int) -> Iterator[tuple[int, int]]:
    """From where to where the groups have a known shape; `left` counts the digits from a group to the chain's end."""
    lengths = [end - start for start, end in groups]
    shortest = lengths[:]
    for at in range(len(lengths) - 2, -1, -1):
        shortest[at] = min(lengths[at], shortest[at + 1])
    done = 0
    for at, (start, end) in enumerate(groups):
        before, first, several = text[start - 1 : start] if start else "", text[start:end], at + 1 < len(groups)
        last = len(groups)
        if at < done:
            hit = False
        elif before == "+" or (before == "(" and text[start - 2 : start - 1] == "+"):
            hit = left >= 8 and not _SUM.search(text, max(0, start - 3), start)
            last = _groups_within(lengths, at, 15)
        elif first[0] == "0" and at and before in "-.":  # inside of a number with hyphens
            hit = False
        elif first.startswith("00"):  # 0049 30 ...
            hit = several and 10 <= left <= 16 and len(first) > 2 and first[2] != "0"
        elif first.startswith("0") and several:  # 030 123 ..., 01.84.17. ...
            hit = 9 <= left <= 11 and shortest[at] >= 2
        elif before == "(" and text[end : end + 1] == ")" and several:  # (08) 8747 ...
            hit = len(first) <= 3 and left >= 7
            last = _groups_within(lengths, at, 10 if lengths[at : at + 3] == [3, 3, 4] else 12)
        else:
            hit = lengths[at : at + 3] == [3, 3, 4] and first[0] in "23456789"
            last = at + 3
        if hit:
            yield start, groups[last - 1][1]
            done = last
        left -= lengths[at]


def _groups_within(lengths: list[int], at: int, most: int) -> int:
    """Behind which group from `at` on there are at most `most` digits; one group there is always."""
    end, total = at + 1, lengths[at]
    while end < len(lengths) and total + lengths[end] <= most:
        total += lengths[end]
        end += 1
    return end


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """The span with the sign, the bracket and the extension that belong to the number."""
    lead = _LEAD.search(text, max(0, start - 3), start)
    if lead and ("+" in lead[0] or ")" in text[start:end]):
        start = lead.start()
    tail = _TAIL.match(text, end)
    return start, tail.end() if tail else end


def _said_to_be_a_phone(text: str, start: int, end: int, groups: int, digits: int) -> bool:
    """Whether words say so: anywhere in what comes before, or, for a short number in one piece, next to it."""
    window = text[max(0, start - 40) : start]
    if _OTHER_CONTEXT.search(window):
        return False
    near = _CONTEXT.search(window) if digits >= 9 or groups > 1 else _NEXT_TO_IT.search(window)
    return near is not None or _BEHIND_IT.match(text, end) is not None


def _in_a_guid(text: str, start: int) -> bool:
    return any(match.start() <= start - max(0, start - 40) < match.end() for match in _GUID.finditer(text[max(0, start - 40) : start + 40]))
