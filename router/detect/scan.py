"""One text, prepared for its searches: each view of it is made once, when first asked for."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...shared_protocol.once import once
from .finding import Finding
from .fold import fold, way_back

# Groups of digits with 1 to 3 separators between them, or the end of a line: each repeat is unambiguous, so the scan is linear.
_CHAIN = re.compile(r"[0-9]+(?:[ \t.()/-]{1,3}[0-9]+)*")
_WRAPPED = re.compile(r"[0-9]+(?:(?:[ \t.()/-]{1,3}|[ \t/-]{0,3}\r?\n[ \t>]{0,8})[0-9]+)*")
_GLUED_BEFORE = re.compile(r"[A-Za-z]\Z|\w_\Z")
_GLUED_AFTER = re.compile(r"[A-Za-z]|_\w")
_DIGITS = bytes(48 if 48 <= code < 58 else 0 for code in range(256))
_LETTERS = bytes(code if code >= 128 or chr(code).isalpha() else 32 for code in range(256))


class Scan:
    """`written` is the text as it came, `text` has look-alike characters folded: that is what is searched.

    A mark or a digit ends a word: "self-harm" is two, so is "don't".
    """

    def __init__(self, text: str) -> None:
        self.written = text
        self.text = fold(text)

    @once
    def lower(self) -> str:
        """`text` in small letters, position by position: the one letter whose small form is two characters gets one."""
        return self.text.replace("İ", "i").lower()

    @once
    def letters(self) -> str:
        """`lower` with a space for whatever belongs to no word, position by position."""
        return letters_of(self.lower)

    @once
    def words(self) -> list[str]:
        return self.letters.split()

    def finding(self, kind: str, start: int, end: int) -> Finding:
        """A finding from `start` to `end` of `text`, placed in `written`."""
        if len(self.text) == len(self.written):
            return Finding(kind, start, end)
        return Finding(kind, self._way_back(start), self._way_back(end))

    @once
    def _way_back(self) -> Callable[[int], int]:
        return way_back(self.written)

    @once
    def chains(self) -> list[re.Match[str]]:
        """Runs of digits with separators, in order: all that may be a number of a person, a card or a machine."""
        return self._runs(_CHAIN)

    @once
    def wrapped(self) -> list[re.Match[str]]:
        """The runs that go on over the end of a line."""
        return [run for run in self._runs(_WRAPPED) if "\n" in run[0]] if "\n" in self.text else []

    def _runs(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        digits = self.text.encode("ascii", "replace").translate(_DIGITS)  # a byte per character: positions agree
        found = []
        at = digits.find(b"0")
        while at >= 0 and (run := pattern.match(self.text, at)):
            found.append(run)
            at = digits.find(b"0", run.end())
        return found


def glued_before(text: str, start: int) -> bool:
    """Whether what starts there is the end of a name, a hash or a part number. An underscore alone is _emphasis_."""
    return _GLUED_BEFORE.search(text, max(0, start - 2), start) is not None


def glued_after(text: str, end: int) -> bool:
    """Whether what ends there goes on as one."""
    return _GLUED_AFTER.match(text, end) is not None


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, in order."""
    return letters_of(text.lower()).split()


def letters_of(lower: str) -> str:
    """A text in lower case with a space for whatever belongs to no word, position by position."""
    return lower.encode("utf-8", "surrogatepass").translate(_LETTERS).decode("utf-8", "surrogatepass")
