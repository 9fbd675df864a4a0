"""Fills in the values again, while an answer arrives.

    held         text that may still become a placeholder: never more than one could be, and nothing while none begins
    pushed       "Write to [EMA"   "IL_1_kdtq"   "zbrm] today"
    given away   "Write to "       ""            "jane@example.com today"

The outcome does not depend on how the text is cut. Unknown placeholders stay as they are, and so do known ones inside an address of
the web (links.py), which whatever shows the text may fetch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .links import Links
from .placeholder import NOISE, squeezed

MAX_NOISE = 4  # marks between two letters
_MORE = -1


class Part(NamedTuple):
    """A stretch of the text that came, and what is shown for it."""

    source: str
    shown: str


class _Match(NamedTuple):
    start: int  # of the bracket when there are both, else of the first letter
    end: int  # _MORE: the text may go on so that it becomes one
    form: str = ""


class Matcher:
    """Finds placeholders of a given set, as a model may have rewritten them."""

    def __init__(self, forms: Mapping[str, str]) -> None:
        self._forms = forms
        self._prefixes = frozenset(form[:length] for form in forms for length in range(1, len(form)))
        first = {letter for form in forms for letter in (form[0], form[0].upper())}
        self._first = re.compile(f"[{re.escape(''.join(sorted(first)))}[]") if forms else None

    def next(self, text: str, at: int, *, ended: bool) -> _Match | None:
        """The first one from `at` on that is complete, or that `text` may end in the middle of unless it has `ended`."""
        while self._first and (candidate := self._first.search(text, at)):
            at = candidate.start()
            match = self._match(text, at, ended)
            if match is not None:
                return match
            at += 1
        return None

    def all(self, text: str) -> Iterator[_Match]:
        """All that are complete in a whole text. Quick where there are none."""
        flat = squeezed(text)
        at = 0 if any(form in flat for form in self._forms) else len(text)
        while match := self.next(text, at, ended=True):
            yield match
            at = match.end

    def _match(self, text: str, at: int, ended: bool) -> _Match | None:
        start, opened = at, text[at] == "["
        if opened:
            at = _past_noise(text, at + 1)
        elif at and text[at - 1].isalnum():
            return None  # in the middle of a word
        letters, found, noise = at, "", 0
        while found not in self._forms:
            if at == len(text):
                return None if ended else _Match(start, _MORE)
            letter = text[at]
            longer = found + (squeezed(letter) or " ")
            if longer in self._prefixes or longer in self._forms:
                found, noise = longer, 0
            elif found and letter in NOISE and noise < MAX_NOISE:
                noise += 1
            else:
                return None
            at += 1
        if opened:
            close = _past_noise(text, at)
            if close == len(text) and not ended:
                return _Match(start, _MORE)
            if text[close : close + 1] == "]":
                return _Match(start, close + 1, found)
        if at == len(text) and not ended:
            return _Match(start, _MORE)
        return None if text[at : at + 1].isalnum() else _Match(letters, at, found)


def _past_noise(text: str, at: int) -> int:
    end = at
    while end < len(text) and end - at < MAX_NOISE and text[end] in NOISE:
        end += 1
    return end


class Restorer:
    """`push` a text piece by piece, then `finish`: the parts joined are all that came, and what is shown for it."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """`values`: form -> value, as `RedactionMapping.values` gives them."""
        self._values = values
        self._matcher = Matcher(values)
        self._links = Links()
        self._before = ""  # the last character that was given away
        self._held = ""

    def push(self, text: str) -> list[Part]:
        return self._take(text, ended=False)

    def finish(self) -> list[Part]:
        return self._take("", ended=True)

    def _take(self, text: str, *, ended: bool) -> list[Part]:
        text = self._before + self._held + text
        at, parts = len(self._before), []
        while at < len(text):
            match = self._matcher.next(text, at, ended=ended)
            plain = text[at : match.start] if match else text[at:]
            if plain:
                parts.append(self._part(plain, plain))
            if match is None or match.end == _MORE:
                at = match.start if match else len(text)
                break
            source, at = text[match.start : match.end], match.end
            inside = self._links.inside
            parts.append(self._part(source, source if inside else self._values[match.form]))
        self._before, self._held = text[max(0, at - 1) : at], text[at:]
        return parts

    def _part(self, source: str, shown: str) -> Part:
        self._links.feed(shown)
        return Part(source, shown)


def restored(text: str, values: Mapping[str, str]) -> str:
    """A whole text with its values filled in."""
    restorer = Restorer(values)
    return "".join(part.shown for part in [*restorer.push(text), *restorer.finish()])
