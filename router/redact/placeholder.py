"""What stands for a value while its text is away from the device: `[EMAIL_1_kdtqzbrm]`.

    [ EMAIL _ 1 _ kdtqzbrm ]
      │       │   └── 8 letters drawn from the conversation's secret and the value: nobody can guess a valid one
      │       └────── the first, second, … value of its kind in this conversation
      └────────────── its kind: a model writes better about an address that it knows to be one

Models do not copy to the letter. What they change without changing the meaning is put up with: capitals, lost brackets, marks of
emphasis and escapes between the letters, other hyphens. The `form` is what is left: `email1kdtqzbrm`.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

ALPHABET = "bcdfghjkmnpqrstvwxz"  # no vowels: it spells no word that a detector may know; no l, which looks like 1
SUFFIX = 8  # letters: 19 ** 8 = 1.7e10
MAX_LABEL = 12
# Between the letters of a placeholder: emphasis, escapes, hyphens of every kind, characters without width.
NOISE = frozenset("*_~`\\-\u00ad\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u200b\u200c\u200d\u2060\ufeff")
_SQUEEZE: dict[int, str | None] = {ord(mark): None for mark in NOISE} | {code: chr(code + 32) for code in range(65, 91)}


@dataclass(frozen=True, slots=True)
class Placeholder:
    kind: str
    number: int  # from 1
    suffix: str

    @property
    def text(self) -> str:
        """As it stands in a text."""
        return f"[{self.bare}]"

    @property
    def bare(self) -> str:
        """As it stands where an API takes a name, of letters, digits and underscores."""
        return f"{label_of(self.kind)}_{self.number}_{self.suffix}"

    @property
    def form(self) -> str:
        return squeezed(self.bare)


def label_of(kind: str) -> str:
    """The kind as capitals, A to Z alone: a number must follow it in every form, so that no form begins another."""
    return "".join(letter for letter in kind.upper() if "A" <= letter <= "Z")[:MAX_LABEL] or "VALUE"


def suffix_of(secret: bytes, value: str, attempt: int) -> str:
    """Letters that tell nothing about `value` to whoever lacks `secret`; another `attempt` gives others."""
    digest = hmac.digest(secret, f"{attempt}:{value}".encode("utf-8", "surrogatepass"), "sha256")
    number = int.from_bytes(digest[:16], "big")  # so much longer than 19 ** 8 that the remainder favours nothing
    letters = []
    for _ in range(SUFFIX):
        number, letter = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[letter])
    return "".join(letters)


def squeezed(text: str) -> str:
    """`text` without what may stand between the letters of a placeholder, in small letters (ASCII's alone)."""
    return text.translate(_SQUEEZE)
