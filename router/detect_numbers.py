"""Payment cards, bank accounts and telephone numbers: digits with separators, told apart by check digits, shape and context.

One linear scan finds chains of digit groups; only what has the right shape is validated, and at most MAX_CANDIDATES of those
per text: a text with more is not judged, but treated as sensitive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from stdnum import iban, luhn, numdb

MAX_CANDIDATES = 64

# A chain: groups of digits with 1 to 3 separators between them. Each repeat is unambiguous: the scan is linear.
_CHAIN = re.compile(r"\d+(?:[ .()/\u2010-\u2013-]{1,3}\d+)*")
_DIGITS = re.compile(r"\d+")


class TooManyCandidates(Exception):
    """More candidates than are validated: the text is treated as sensitive."""


class Budget:
    """Counts what is validated."""

    def __init__(self) -> None:
        self.left = MAX_CANDIDATES

    def spend(self) -> None:
        if self.left == 0:
            raise TooManyCandidates
        self.left -= 1


# ---- payment cards -------------------------------------------------------------------------------------------

_CARD = re.compile(
    r"4\d{12}(?:\d{3}){0,2}"  # Visa: 13, 16, 19
    r"|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|3(?:0[0-59]|[689]\d)\d{11}(?:\d{2})?"  # Diners Club
    r"|(?:2131|1800)\d{11}|35(?:2[89]|[3-8]\d)\d{12}"  # JCB
    r"|(?:6011|64[4-9]\d|65\d\d)\d{12}(?:\d{3})?"  # Discover
    r"|62\d{14,17}"  # UnionPay
    r"|(?:50|5[6-9]|6\d)\d{10,17}"  # Maestro
)
_CARD_SHAPES = ((4, 4, 4, 4, 3), (4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 2), (4, 4, 4, 1))


def count_cards(text: str) -> int:
    budget = Budget()
    return sum(_is_card(candidate, budget) for candidate in _card_candidates(text))


def _card_candidates(text: str) -> Iterator[str]:
    for chain in _CHAIN.finditer(text):
        if chain.end() - chain.start() < 12:
            continue
        groups = _DIGITS.findall(chain[0])
        at = 0
        while at < len(groups):
            if 12 <= len(groups[at]) <= 19:
                yield groups[at]
            for shape in _CARD_SHAPES:
                window = groups[at : at + len(shape)]
                if len(groups[at]) == 4 and tuple(map(len, window)) == shape:
                    yield "".join(window)
            at += 1


def _is_card(digits: str, budget: Budget) -> bool:
    if not _CARD.fullmatch(digits):
        return False
    budget.spend()
    return bool(luhn.is_valid(digits))


# ---- bank accounts -------------------------------------------------------------------------------------------

_IBAN = re.compile(r"(?<![^\W_])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}")
_IBAN_FIELD = re.compile(r"(\d+)!?[nac]")


def count_ibans(text: str) -> int:
    budget = Budget()
    found = 0
    match = _IBAN.search(text)
    while match:
        compact = re.sub("[ -]", "", match[0]).upper()
        length = _iban_length(compact[:2])
        if length is not None and len(compact) >= length:
            budget.spend()
            if iban.is_valid(compact[:length], check_country=False):
                found += 1
        match = _IBAN.search(text, match.start() + 4)
    return found


@lru_cache(maxsize=700)
def _iban_length(country: str) -> int | None:
    """Characters of an IBAN of this country, from the registry that python-stdnum carries."""
    for _, properties in numdb.get("iban").info(country):
        if "bban" in properties:
            return 4 + sum(int(width) for width in _IBAN_FIELD.findall(properties["bban"]))
    return None


# ---- telephones ----------------------------------------------------------------------------------------------

_CONTEXT = re.compile(
    r"(?i)\b(?:phones?|call(?:ed|ing)?|tel(?:ephone)?s?|mobile|cell(?:phone)?|fax|contact|whatsapp|sms|dial|ring|reach|hotline)\b"
)


def count_phones(text: str) -> int:
    budget = Budget()
    found = 0
    for chain in _CHAIN.finditer(text):
        if chain.end() - chain.start() < 7:
            continue
        digits = sum(map(len, _DIGITS.findall(chain[0])))
        if not 7 <= digits <= 15:
            continue
        budget.spend()
        found += _is_phone(text, chain, digits)
    return found


def _is_phone(text: str, chain: re.Match[str], digits: int) -> bool:
    start = chain.start()
    if text[start - 1 : start] == "+" and digits >= 8:
        return True
    groups = _DIGITS.findall(chain[0])
    shape = tuple(map(len, groups))
    if shape[-3:] == (3, 3, 4) and len(shape) in (3, 4):
        return True
    return _CONTEXT.search(text, max(0, start - 40), start) is not None
