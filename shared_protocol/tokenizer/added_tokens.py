"""Added tokens: texts that are one token each, found before anything else is.

Guarded ones (control tokens, marks of turns) match outside the literal spans only; the others are words like any, and match everywhere.
What lies between two is one continuous text for the pre-tokenizer and the merges, whether it is literal or not:

    text      <|im_start|>user\\n say <|im_end|> <|im_end|>\\n
    literal                          ^^^^^^^^^^                 the user typed it: stays text
    pieces    S          T--------------------  S         T-
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ASCII_SPACES = "\t\n\x0b\x0c\r "  # what llama.cpp strips
# White_Space of the Unicode Character Database, what the `tokenizers` library strips; Python's own adds U+001C to U+001F
SPACES = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


@dataclass(frozen=True, slots=True)
class AddedToken:
    text: str
    token_id: int
    guarded: bool = True
    lstrip: bool = False  # white space before it belongs to it
    rstrip: bool = False
    single_word: bool = False  # only where no letter, digit or "_" touches it


class AddedTokens:
    """Finds added tokens as llama.cpp does: the longest first, over the whole text, then the next in what is left."""

    def __init__(self, tokens: Sequence[AddedToken], spaces: str = ASCII_SPACES) -> None:
        """`spaces` are the characters that `lstrip` and `rstrip` strip."""
        self._spaces = spaces
        self._tokens = sorted((token for token in tokens if token.text), key=lambda token: -len(token.text.encode()))
        lengths: dict[str, set[int]] = {}
        for token in self._tokens:
            lengths.setdefault(token.text[0], set()).add(len(token.text))
        self._lengths = {first: sorted(found) for first, found in lengths.items()}
        self._texts = frozenset(token.text for token in self._tokens)
        self._heads = frozenset(token.text[: self._lengths[token.text[0]][0]] for token in self._tokens)

    @property
    def guarded_texts(self) -> tuple[str, ...]:
        return tuple(token.text for token in self._tokens if token.guarded)

    @property
    def longest(self) -> int:
        """Bytes of the longest."""
        return max((len(token.text.encode()) for token in self._tokens), default=0)

    @property
    def strips(self) -> bool:
        return any(token.lstrip or token.rstrip for token in self._tokens)

    def split(self, text: str, literal_spans: Sequence[tuple[int, int]]) -> Iterator[str | int]:
        """Yield texts and the ids of the tokens between them, in order; empty texts are left out."""
        present = self._present(text)
        if not present:
            if text:
                yield text
            return
        literal = bytearray(len(text))
        for start, end in literal_spans:
            literal[start:end] = b"\1" * (end - start)
        taken = bytearray(len(text))
        matches = [match for token in self._tokens if token.text in present for match in self._take(text, token, literal, taken)]
        at = 0
        for start, end, number in sorted(matches):
            if start > at:
                yield text[at:start]
            yield number
            at = end
        if at < len(text):
            yield text[at:]

    def _present(self, text: str) -> set[str]:
        """Tokens that occur in the text: some vocabularies have thousands, most texts none, and this never looks at each."""
        present: set[str] = set()
        for first, lengths in self._lengths.items():
            places, at = [], text.find(first)
            while at >= 0:
                if text[at : at + lengths[0]] in self._heads:
                    places.append(at)
                at = text.find(first, at + 1)
            for length in lengths if places else ():
                present |= self._texts & {text[at : at + length] for at in places}
        return present

    def _take(self, text: str, token: AddedToken, literal: bytearray, taken: bytearray) -> Iterator[tuple[int, int, int]]:
        """Take every place where the token may match, (start, end, id), and that no longer one has taken."""
        search, size = 0, len(token.text)
        while (start := text.find(token.text, search)) >= 0:
            end = start + size
            if (blocked := taken.find(1, start, end)) >= 0:
                search = taken.find(0, blocked)
                if search < 0:
                    return
                continue
            if (token.guarded and literal.find(1, start, end) >= 0) or (token.single_word and _touches_word(text, start, end)):
                search = start + 1
                continue
            while token.lstrip and start > 0 and not taken[start - 1] and text[start - 1] in self._spaces:
                start -= 1
            while token.rstrip and end < len(text) and not taken[end] and text[end] in self._spaces:
                end += 1
            taken[start:end] = b"\1" * (end - start)
            yield start, end, token.token_id
            search = end


def _touches_word(text: str, found: int, after: int) -> bool:
    return any(character.isalnum() or character == "_" for character in text[max(0, found - 1) : found] + text[after : after + 1])
