"""Replaces the values of one request, in its texts and in its names."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ..detect.finding import Finding, resolve
from .links import links
from .mapping import RedactionMapping
from .placeholder import Placeholder, squeezed
from .restore import Matcher

Find = Callable[[Sequence[str]], Sequence[Sequence[Finding]]]  # what must be replaced in each of some texts
LITERAL = "literal"  # the kind of a text that only looks like one of this conversation's placeholders
ADDRESS = "url"


class Replacer:
    """`texts`: all of the request, where new placeholders must not occur and where values are looked for first."""

    def __init__(self, texts: Sequence[str], find: Find, mapping: RedactionMapping) -> None:
        self._mapping = mapping
        self._find = find
        once = list(dict.fromkeys(texts))
        self._found = dict(zip(once, find(once), strict=True))
        self._avoid = squeezed("\n".join(texts))
        self._forged = Matcher(mapping.values())
        self._known = {value: placeholder.kind for placeholder, value in mapping.entries()}
        for text, found in self._found.items():
            for one in found:
                self._known.setdefault(text[one.start : one.end], one.kind)
        self.replaced: Counter[str] = Counter()

    def find(self, text: str) -> Sequence[Finding]:
        found = self._found.get(text)
        if found is None:
            (found,) = self._find([text])
            self._found[text] = found
        return found

    def in_text(self, text: str) -> str:
        return self.at(text, self.spans(text))

    def in_name(self, text: str) -> str:
        """A name stays one of letters, digits and underscores."""
        return self._joined(text, self.spans(text), lambda placeholder: placeholder.bare)

    def at(self, text: str, spans: Sequence[Finding]) -> str:
        """`text` with placeholders for `spans`, which do not overlap."""
        return self._joined(text, self._widened(text, spans), lambda placeholder: placeholder.text)

    def spans(self, text: str) -> list[Finding]:
        """What the detectors find in `text`, what they have found elsewhere, and texts that pass for placeholders; none overlap."""
        every = [*self.find(text)]
        for value, kind in self._known.items():
            every += [Finding(kind, at, at + len(value)) for at in _occurrences(value, text)]
        every += [Finding(LITERAL, match.start, match.end) for match in self._forged.all(text)]
        return resolve(every)

    def _widened(self, text: str, spans: Sequence[Finding]) -> Sequence[Finding]:
        """Where a value stands in an address of the web, all of the address is replaced: nothing is filled in inside of one, so
        that only the user's own addresses ever hold a value."""
        if not spans:
            return spans
        starts, ends = [one.start for one in spans], [one.end for one in spans]
        addresses = []
        for start, end in links(text):
            first, last = bisect_left(ends, start + 1), bisect_left(starts, end + 1)
            if first < last:
                addresses.append(Finding(ADDRESS, min(start, starts[first]), max(end, ends[last - 1])))
        return resolve([*spans, *addresses])

    def _joined(self, text: str, spans: Sequence[Finding], shape: Callable[[Placeholder], str]) -> str:
        pieces, at = [], 0
        for one in spans:
            placeholder = self._mapping.placeholder(one.kind, text[one.start : one.end], self._avoid)
            self.replaced[placeholder.kind] += 1
            pieces += [text[at : one.start], shape(placeholder)]
            at = one.end
        return "".join([*pieces, text[at:]])


def _occurrences(value: str, text: str) -> Iterator[int]:
    """Where `value` stands in `text` as a whole: not as part of a longer word or number."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        glued_before = at > 0 and value[0].isalnum() and text[at - 1].isalnum()
        glued_after = value[-1].isalnum() and text[end : end + 1].isalnum()
        if not glued_before and not glued_after:
            yield at
        at = text.find(value, at + 1)
