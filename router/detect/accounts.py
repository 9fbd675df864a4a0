"""Payment cards and bank accounts: numbers that carry check digits.

Only what has the right shape is validated, and at most MAX_CANDIDATES of those per text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from stdnum import iban, luhn, numdb

from .budget import Budget
from .finding import Finding
from .scan import Scan, glued_after

_DIGITS = re.compile(r"\d+")
_CARD = re.compile(
    r"4\d{12}(?:\d{3}){0,2}"  # Visa: 13, 16, 19
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|3(?:0[0-59]|[689]\d)\d{11}(?:\d{2})?"  # Diners Club
    r"|(?:2131|1800)\d{11}|35\d{14}"  # JCB
    r"|(?:6011|64[4-9]\d|65\d\d)\d{12}(?:\d{3})?"  # Discover
    r"|62\d{14,17}"  # UnionPay
    r"|(?:0604|50(?:18|20|38)|5[6-8]\d\d|5893|6304|6390|6759|676[1-3])\d{8,15}"  # Maestro
)
_CARD_SHAPES = ([4, 4, 4, 4, 3], [4, 4, 4, 4], [4, 6, 5], [4, 6, 4], [4, 4, 4, 1])
_CARD_CONTEXT = re.compile(r"(?i)\b(?:cards?|visa|mastercard|amex|maestro|credit|debit)\b")
_IN_A_HASH = re.compile(r"[0-9][A-Za-z]{1,8}\Z|(?<![A-Za-z])[A-Fa-f]{1,2}\Z")  # letters before digits; "Visa4111" is none
_FRACTION = re.compile(r"\d+\.(?!0\Z)\d+")  # 4111111111111111.0 is how tables of numbers write a card


def find_cards(scan: Scan) -> list[Finding]:
    """Numbers with the length, prefix and check digit of a payment card, also in groups; beside the word "card" any prefix does."""
    budget = Budget()
    text = scan.text
    found = []
    for chains, candidates in ((scan.chains, _card_candidates), (scan.wrapped, _wrapped_candidates)):
        for chain in chains:
            start, end = chain.span()
            if end - start < 12:
                continue
            if glued_after(text, end) or _IN_A_HASH.search(text, max(0, start - 10), start):
                continue
            for left, right in candidates(chain[0]):
                digits = "".join(_DIGITS.findall(chain[0], left, right))
                if _CARD.fullmatch(digits) or _CARD_CONTEXT.search(text, max(0, start - 40), start):
                    budget.spend()
                    if luhn.is_valid(digits):
                        found.append(scan.finding("card", start + left, start + right))
    return found


def _card_candidates(chain: str) -> Iterator[tuple[int, int]]:
    groups = [match.span() for match in _DIGITS.finditer(chain)]
    if not _FRACTION.fullmatch(chain):
        yield from ((start, end) for start, end in groups if 12 <= end - start <= 19)
    if 12 <= len(groups) <= 19 and all(end - start == 1 for start, end in groups):
        yield 0, len(chain)
        return
    yield from _shaped(groups)


def _wrapped_candidates(chain: str) -> Iterator[tuple[int, int]]:
    """Groups that go on in the next line, once: a column of numbers is none."""
    for start, end in _shaped([match.span() for match in _DIGITS.finditer(chain)]):
        if chain.count("\n", start, end) == 1:
            yield start, end


def _shaped(groups: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """From where to where groups have the lengths of a card's."""
    lengths = [end - start for start, end in groups]
    for at, length in enumerate(lengths):
        if length == 4:  # as all shapes begin
            for shape in _CARD_SHAPES:
                if lengths[at : at + len(shape)] == shape:
                    yield groups[at][0], groups[at + len(shape) - 1][1]


_IBAN = re.compile(r"[A-Za-z]{2}\d{2}(?:(?:[ \t.-]{0,3}|[ \t]{0,3}\r?\n[ \t>]{0,8})[A-Za-z0-9]){11,30}")
_IBAN_FIELD = re.compile(r"(\d+)!?[nac]")


def find_ibans(scan: Scan) -> list[Finding]:
    """Account numbers of a country of the registry, of its length, whose check digits hold; spaces, ends of lines and small letters do
    not matter."""
    budget = Budget()
    text = scan.text
    found = []
    for chain in scan.chains:
        start = chain.start() - 2
        if start < 0 or not text[start].isalpha() or not text[start + 1].isalpha() or (start and text[start - 1].isalnum()):
            continue
        match = _IBAN.match(text, start)
        if match is None:
            continue
        places = [at for at, character in enumerate(match[0], start) if character.isalnum()]
        length = _iban_length(match[0][:2].upper())
        if length is not None and len(places) >= length:
            budget.spend()
            if iban.is_valid("".join(text[at] for at in places[:length]).upper(), check_country=False):
                found.append(scan.finding("iban", start, places[length - 1] + 1))
    return found


@lru_cache(maxsize=700)
def _iban_length(country: str) -> int | None:
    """Characters of an IBAN of this country, from the registry that python-stdnum carries."""
    for _, properties in numdb.get("iban").info(country):
        if "bban" in properties:
            return 4 + sum(int(width) for width in _IBAN_FIELD.findall(properties["bban"]))
    return None
