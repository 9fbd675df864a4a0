"""What a user has said, read once: what the features, the task and the language of a turn are told from. Bounded work, and lazy.

text   0 ──────── HEAD ──── FEATURES ── … ── -TAIL ── end
       ─language──┤            │               │       │
       ─task──────┤            │               ├───────┤
       ─features───────────────┤               ├───────┤
"""

from __future__ import annotations

from ...shared_protocol.once import once
from ..detect.fold import beyond_ascii
from ..detect.scan import letters_of, words_of
from ..request import RouteRequest

FEATURES = 2_000  # first characters of a turn that its features are counted in, ...
HEAD = 1_000  # ... and those that say its task and its language
TAIL = 500  # last characters, where instructions stand too
MIN_WORDS = 4  # a shorter turn, such as "go on, please", belongs to the task before it

STATEMENTS = ("```", "def ", "class ", "import ", "#include", "for (", "public ", "SELECT ", "return ", ";\n", "{\n", "}\n", "()", "=> ")
FORMULAS = ("=", "^", "\\")
FORMULAS_BEYOND_ASCII = ("√", "∑", "∫", "≤", "≥", "≠", "±", "×", "÷")


class Ends:
    """The beginning and the end of a turn, as one text, and what can be counted in it."""

    def __init__(self, seen: str, words: list[str]) -> None:
        self.seen = seen
        self.words = words  # in lower case, in order
        self.distinct = frozenset(words)

    @once
    def statements(self) -> int:
        """Marks of program text."""
        return sum(map(self.seen.count, STATEMENTS))

    @once
    def formulas(self) -> int:
        """Marks of formulas."""
        return sum(map(self.seen.count, FORMULAS)) + (sum(map(self.beyond.count, FORMULAS_BEYOND_ASCII)) if self.beyond else 0)

    @once
    def beyond(self) -> str:
        """The characters that are not ASCII."""
        return "" if self.seen.isascii() else beyond_ascii(self.seen)


class Reading:
    """One turn."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._seen = _ends(text, FEATURES)
        self._letters = letters_of(self._seen.lower())

    @once
    def features(self) -> Ends:
        return Ends(self._seen, self._letters.split())

    @once
    def task(self) -> Ends:
        if len(self.text) <= HEAD + TAIL:
            return self.features
        return Ends(_ends(self.text, HEAD), self.head_words + self._words(slice(-TAIL, None)))

    @once
    def head_words(self) -> list[str]:
        """Of the first HEAD characters."""
        return self.features.words if len(self.text) <= HEAD else self._words(slice(HEAD))

    def _words(self, part: slice) -> list[str]:
        """The words of a part of what is seen. One letter has a small form of two characters: with it, letters are out of place."""
        if len(self._letters) == len(self._seen):
            return self._letters[part].split()
        return words_of(self._seen[part])


class Said:
    """All turns of the user, in order."""

    def __init__(self, request: RouteRequest) -> None:
        self.turns = [Reading(message.content or "") for message in request.messages if message.role == "user"]

    @once
    def last_task(self) -> Reading:
        """The last turn that says what to do: of at least MIN_WORDS words, else the longest; an empty one where there is none."""
        for turn in reversed(self.turns):
            if len(turn.text.split(None, MIN_WORDS)) >= MIN_WORDS:
                return turn
        return max(self.turns, key=lambda turn: len(turn.text), default=Reading(""))


def _ends(text: str, head: int) -> str:
    return text if len(text) <= head + TAIL else f"{text[:head]}\n{text[-TAIL:]}"
