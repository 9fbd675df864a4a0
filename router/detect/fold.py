"""Making look-alikes alike before a search: full-width and other digits, invisible characters, typographic quotes and dashes.

What copying and typesetting do to a text is undone. Letters of other scripts that only look like ours stay what they are.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from functools import cache

# Blocks with characters that are compatibility forms of ASCII, or decimal digits of other scripts.
_BASIC = ((0xA0, 0x250), (0x600, 0x1C50), (0x2000, 0x2600), (0x3000, 0x3020), (0xA620, 0xABFA), (0xFE10, 0x10000))
_RANGES = (*_BASIC, (0x1D400, 0x1D800), (0x1FBF0, 0x1FBFA), (0xE0000, 0xE0080))
_MARKS = {"‘": "'", "’": "'", "‚": "'", "′": "'", "“": '"', "”": '"', "„": '"', "−": "-", "·": ".", "。": ".", "｡": ".", "⠀": " "}
# Accents and keycaps on the character before them, and what is drawn as nothing: joiners, variation selectors, fillers.
_INVISIBLE = ((0x300, 0x370), (0x20D0, 0x2100), (0xFE00, 0xFE10), (0xE0100, 0xE01F0), (0x115F, 0x1161), (0x3164, 0x3165), (0xFFA0, 0xFFA1))
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_ASCII = bytes(range(128))
FEW = 32  # different characters; up to here one pass for each is quicker than one that looks at every character


def fold(text: str) -> str:
    """`text` with such characters as ASCII, and without invisible ones. Linear, and never longer than `text`."""
    if text.isascii():
        return text
    table = _table()
    folded = [character for character in set(beyond_ascii(text)) if ord(character) in table]
    if len(folded) > FEW:
        return _NOT_ASCII.sub(lambda run: run[0].translate(table), text)
    for character in folded:
        text = text.replace(character, table[ord(character)] or "")
    return text


def beyond_ascii(text: str) -> str:
    """The characters of `text` that are not ASCII, in order."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


def way_back(text: str) -> Callable[[int], int]:
    """From positions in `fold(text)` to those in `text`.

    A folded character stands where its own one stands, so what is invisible belongs to the character before it. Linear work, once.
    """
    table = _table()
    gone: list[int] = []  # where in the folded text each character that is drawn as nothing would have stood
    for run in _NOT_ASCII.finditer(text):
        for at, character in enumerate(run[0], run.start()):
            if table.get(ord(character), "") is None:
                gone.append(at - len(gone))
    return lambda position: position + bisect_right(gone, position)


@cache
def _table() -> dict[int, str | None]:
    table: dict[int, str | None] = {ord(mark): plain for mark, plain in _MARKS.items()}
    table |= {code: None for low, high in _INVISIBLE for code in range(low, high)}
    for low, high in _RANGES:
        for code in range(low, high):
            character = chr(code)
            category = unicodedata.category(character)
            if category == "Cf":
                table[code] = None
            elif category == "Zs":
                table[code] = " "
            elif category in ("Zl", "Zp"):
                table[code] = "\n"
            elif category == "Pd":
                table[code] = "-"
            elif category == "Nd":
                table[code] = str(unicodedata.decimal(character))
            elif len(plain := unicodedata.normalize("NFKC", character)) == 1 and plain != character and plain.isascii():
                table[code] = plain
    return table
