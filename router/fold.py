"""Making look-alikes alike before a search: full-width and other digits, invisible characters, exotic spaces."""

from __future__ import annotations

import unicodedata
from functools import cache

# Blocks with characters that are compatibility forms of ASCII, or decimal digits of other scripts.
_RANGES = ((0xA0, 0x250), (0x600, 0x1C50), (0x2000, 0x2600), (0x3000, 0x3020), (0xA620, 0xABFA), (0xFE10, 0x10000), (0x1D400, 0x1D800))


def fold(text: str) -> str:
    """`text` with such characters as ASCII, and without invisible ones. Linear, and never longer than `text`."""
    return text if text.isascii() else text.translate(_table())


@cache
def _table() -> dict[int, str | None]:
    table: dict[int, str | None] = {}
    for low, high in _RANGES:
        for code in range(low, high):
            character = chr(code)
            category = unicodedata.category(character)
            if category == "Cf":
                table[code] = None
            elif category == "Zs":
                table[code] = " "
            elif category == "Nd":
                table[code] = str(unicodedata.decimal(character))
            elif len(plain := unicodedata.normalize("NFKC", character)) == 1 and plain != character and plain.isascii():
                table[code] = plain
            elif category == "Pd":
                table[code] = "-"
    return table
