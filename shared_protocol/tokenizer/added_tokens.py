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
    """Finds added tokens as llama.cpp does: the longest first, over the whole text, then the next."""

    def __init__(self, tokens: Sequence[AddedToken], spaces: str = ASCII_SPACES) -> None:
        """`spaces` are the characters that `lstrip` and `rstrip` strip."""
        self._spaces = spaces
        self._tokens = sorted((token for token in tokens if token.text), key=lambda token: -len(token.text.encode()))
        # by first character: length of the shortest token that begins so
        self._shortest = {token.text[0]: len(token.text) for token in sorted(self._tokens, key=lambda token: -len(token.text))}

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
        literal = bytearray(len(text))
        for start, end in literal_spans:
            literal[start:end] = b"\1" * (end - start)
        fragments: list[tuple[int, int, int]] = [(0, len(text), -1)]  # start, end, token id or -1
        heads = self._heads(text)
        for token in self._tokens:
            if token.text[: self._shortest[token.text[0]]] in heads and token.text in text:
                fragments = [part for fragment in fragments for part in self._cut(text, fragment, token, literal)]
        for start, end, number in fragments:
            if number >= 0:
                yield number
            elif end > start:
                yield text[start:end]

    def _heads(self, text: str) -> set[str]:
        """Beginnings of tokens that occur in the text: some vocabularies have thousands of tokens, most texts the head of none."""
        heads = set()
        for first, length in self._shortest.items():
            at = text.find(first)
            while at >= 0:
                heads.add(text[at : at + length])
                at = text.find(first, at + 1)
        return heads

    def _cut(self, text: str, fragment: tuple[int, int, int], token: AddedToken, literal: bytearray) -> Iterator[tuple[int, int, int]]:
        """Cut one fragment wherever the token may match."""
        start, end, kind = fragment
        if kind >= 0:
            yield fragment
            return
        search = start
        while (found := text.find(token.text, search, end)) >= 0:
            after = found + len(token.text)
            if (token.guarded and literal.find(1, found, after) >= 0) or (token.single_word and _touches_word(text, found, after)):
                search = found + 1
                continue
            while token.lstrip and found > start and text[found - 1] in self._spaces:
                found -= 1
            while token.rstrip and after < end and text[after] in self._spaces:
                after += 1
            yield start, found, -1
            yield found, after, token.token_id
            start = search = after
        yield start, end, -1


def _touches_word(text: str, found: int, after: int) -> bool:
    return any(character.isalnum() or character == "_" for character in text[max(0, found - 1) : found] + text[after : after + 1])
