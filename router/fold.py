"""Making look-alikes alike before a search: full-width and other digits, invisible characters, typographic quotes and dashes."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# Blocks with characters that are compatibility forms of ASCII, or decimal digits of other scripts.
_RANGES = ((0xA0, 0x250), (0x600, 0x1C50), (0x2000, 0x2600), (0x3000, 0x3020), (0xA620, 0xABFA), (0xFE10, 0x10000), (0x1D400, 0x1D800))
_QUOTES = {"‘": "'", "’": "'", "‚": "'", "′": "'", "“": '"', "”": '"', "„": '"'}
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def fold(text: str) -> str:
    """`text` with such characters as ASCII, and without invisible ones. Linear, and never longer than `text`."""
    if text.isascii():
        return text
    table = _table()
    return _NOT_ASCII.sub(lambda run: run[0].translate(table), text)


@cache
def _table() -> dict[int, str | None]:
    table: dict[int, str | None] = {ord(quote): plain for quote, plain in _QUOTES.items()}
    for low, high in _RANGES:
        for code in range(low, high):
            character = chr(code)
            category = unicodedata.category(character)
            if category == "Cf":
                table[code] = None
            elif category == "Zs":
                table[code] = " "
            elif category == "Pd":
                table[code] = "-"
            elif category == "Nd":
                table[code] = str(unicodedata.decimal(character))
            elif len(plain := unicodedata.normalize("NFKC", character)) == 1 and plain != character and plain.isascii():
                table[code] = plain
    return table
