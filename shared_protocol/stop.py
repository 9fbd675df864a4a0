"""Where a text ends by its stop strings, decided while it arrives."""

from __future__ import annotations

from collections.abc import Sequence


class StopChecker:
    """Ends a text at the stop string that is complete first; of two complete at the same character, at the longer.

        stop ["END", "EN!"]    pushed "the E"      shown "the "     held back "E": it may become a stop string
                               pushed "nd EN"      shown "End "     held back "EN"
                               pushed "D of it"    shown ""         stopped by "END"; nothing after is ever shown

    The outcome does not depend on how the text is cut into pieces. Each character costs O(stop strings) amortised
    (Knuth, Morris and Pratt, "Fast pattern matching in strings", 1977).
    """

    __slots__ = ("_fallbacks", "_held", "_matched", "_stop", "stopped")

    def __init__(self, stop: Sequence[str]) -> None:
        assert all(stop), "an empty stop string would end every text at once"
        self._stop = tuple(stop)
        self._fallbacks = [_fallback_table(string) for string in self._stop]
        self._matched = [0] * len(self._stop)  # length of the longest prefix of each stop string that the text ends with
        self._held = ""
        self.stopped: str | None = None

    def push(self, text: str) -> tuple[str, str | None]:
        """Take a piece; return what may be shown now, and the stop string that ended the text, if one has."""
        if self.stopped is not None:
            return "", self.stopped
        if not self._stop:
            return text, None
        pending = self._held + text
        for index in range(len(self._held), len(pending)):
            complete = self._advance(pending[index])
            if complete is not None:
                self.stopped, self._held = complete, ""
                return pending[: index + 1 - len(complete)], complete
        shown = len(pending) - max(self._matched)
        self._held = pending[shown:]
        return pending[:shown], None

    def flush(self) -> str:
        """End the text: return what was held back, which is no stop string after all."""
        held, self._held = self._held, ""
        return held

    def _advance(self, character: str) -> str | None:
        """Feed one character to every stop string; return the longest that it completes."""
        complete = ""
        for number, string in enumerate(self._stop):
            length, fallback = self._matched[number], self._fallbacks[number]
            while length and string[length] != character:
                length = fallback[length]
            length += string[length] == character
            self._matched[number] = length
            if length == len(string) and length > len(complete):
                complete = string
        return complete or None


def _fallback_table(string: str) -> list[int]:
    """For each prefix length n: the length of the longest proper prefix of `string` that `string[:n]` ends with."""
    table, length = [0, 0], 0
    for character in string[1:]:
        while length and string[length] != character:
            length = table[length]
        length += string[length] == character
        table.append(length)
    return table
