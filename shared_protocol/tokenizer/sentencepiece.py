"""SentencePiece BPE: the neighbours whose joint token scores best are joined first, the leftmost of equals, until none can be.

A list of merges cannot say this in every case: "aa"+"a" and "a"+"aa" make one token and so are equals, while two merges have two ranks.
So the loop is our own. What keeps it fast: no token joins two characters that stand side by side inside no token, so text is cut there,
and the pieces (mostly words) are remembered.

    text     ▁the ▁cat ▁sat              "e▁" and "t▁" are inside no token
    pieces   ▁the | ▁cat | ▁sat

Characters that no token writes become the tokens of their bytes, "<0xE2>".
Source: T. Kudo and J. Richardson, "SentencePiece" (2018); order of joins as in llama.cpp, which is the oracle of the tests.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelFileError
from .vocabulary import BYTE, NORMAL, Vocabulary

SPACE = "\u2581"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_REMEMBERED, _LONGEST_REMEMBERED = 65_536, 64  # pieces, characters of one


def byte_of(token: str) -> int | None:
    """The byte that a token such as "<0x0A>" stands for."""
    found = _BYTE_TOKEN.fullmatch(token)
    return int(found[1], 16) if found else None


def piece_bytes(vocabulary: Vocabulary, token_id: int) -> bytes:
    """What a token of SentencePiece's adds to the text; b"" for one that is neither text nor a byte."""
    token, kind = vocabulary.tokens[token_id], vocabulary.kinds[token_id]
    if kind == BYTE and (byte := byte_of(token)) is not None:
        return bytes([byte])
    return token.replace(SPACE, " ").encode() if kind == NORMAL else b""


class SentencePieceBpe:
    """`longest`, `encode`, `token_bytes` and `countable` as `tokenizer.Encoder` has them."""

    def __init__(self, vocabulary: Vocabulary, scores: Sequence[float], guarded: frozenset[int], *, space_first: bool) -> None:
        """`guarded` ids and byte tokens are no plain text, whatever a text spells: no join makes them.

        `space_first`: a text that begins, or follows an added token, gets a space in front. Raises ModelFileError naming the key at fault.
        """
        self._vocabulary = vocabulary
        self._space_first = space_first
        kinds = vocabulary.kinds
        bytes_by_value = {byte_of(token): number for number, token in enumerate(vocabulary.tokens) if kinds[number] == BYTE}
        for byte in range(256):
            if byte not in bytes_by_value:
                raise ModelFileError(f"'{vocabulary.where}tokens' has no token for the byte <0x{byte:02X}>: some text could not be written")
        self._byte_ids = [bytes_by_value[byte] for byte in range(256)]
        self._ids = {text: number for text, number in vocabulary.ids.items() if number not in guarded and kinds[number] != BYTE}
        self._order: Mapping[str, float] = {text: -scores[number] for text, number in self._ids.items() if len(text) > 1}
        self._inside = _neighbours(list(self._order))
        self._known: dict[str, list[int]] = {}
        self.longest = max((len(text.encode()) - 2 * text.count(SPACE) for text in self._ids), default=1)

    def encode(self, text: str, *, starts: bool) -> list[int]:
        if self._space_first:
            text = " " + text
        ids: list[int] = []
        for piece in self._pieces(text.replace(" ", SPACE)):
            known = self._known.get(piece)
            if known is None:
                known = self._join(piece)
                if len(piece) <= _LONGEST_REMEMBERED:
                    if len(self._known) >= _REMEMBERED:
                        self._known = {}
                    self._known[piece] = known
            ids += known
        return ids

    def token_bytes(self, token_id: int) -> bytes:
        return piece_bytes(self._vocabulary, token_id)

    def countable(self, text: bytes) -> int:
        return len(text)

    def _pieces(self, text: str) -> list[str]:
        """The text, cut between characters that no token holds side by side."""
        codes = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.int64)
        pairs = (codes[:-1] << 21) | codes[1:]
        places = np.minimum(np.searchsorted(self._inside, pairs), len(self._inside) - 1)
        cuts = [0, *(np.flatnonzero(self._inside[places] != pairs) + 1).tolist(), len(text)]
        return [text[start:end] for start, end in pairwise(cuts)]

    def _join(self, piece: str) -> list[int]:
        """The joins of one piece. O(n log n): each join leaves two new pairs to try, and a token bounds how long a pair can be.

        start of a symbol   0  1  2  3  4  5        after "▁t" and "he" were joined
        end                 2  -  4  -  5  6        0 marks a symbol that was joined to its left
        before              -  -  0  -  2  4
        """
        if piece in self._ids and len(piece) == 1:
            return [self._ids[piece]]
        size, order = len(piece), self._order
        end, before = list(range(1, size + 1)), list(range(-1, size - 1))
        heap = [(order[pair], at, at + 2) for at in range(size - 1) if (pair := piece[at : at + 2]) in order]
        heapq.heapify(heap)
        while heap:
            _, left, right_end = heapq.heappop(heap)
            right = end[left]
            if not right or right >= size or end[right] != right_end:
                continue  # one of the two has been joined to another meanwhile
            end[left], end[right] = right_end, 0
            if right_end < size:
                before[right_end] = left
                far = end[right_end]
                if (found := order.get(piece[left:far])) is not None:
                    heapq.heappush(heap, (found, left, far))
            if (further := before[left]) >= 0 and (found := order.get(piece[further:right_end])) is not None:
                heapq.heappush(heap, (found, further, right_end))
        ids: list[int] = []
        at = 0
        while at < size:
            symbol = piece[at : end[at]]
            number = self._ids.get(symbol)
            ids += [self._byte_ids[byte] for byte in symbol.encode()] if number is None else [number]
            at = end[at]
        return ids


def _neighbours(tokens: Sequence[str]) -> NDArray[np.int64]:
    """Pairs of characters that stand side by side inside a token, (left << 21 | right), ascending, never empty."""
    codes = np.frombuffer("".join(tokens).encode("utf-32-le"), "<u4").astype(np.int64)
    pairs = (codes[:-1] << 21) | codes[1:]
    ends = np.cumsum([len(token) for token in tokens], dtype=np.int64)
    between = ends[:-1] - 1  # the last character of one token and the first of the next
    return np.unique(np.append(np.delete(pairs, between), -1))
