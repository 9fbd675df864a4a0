"""Byte-level BPE: every byte has a symbol, and merges join symbols inside the words that a pre-tokenizer cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from ..errors import ModelFileError
from .library import guard, ids_of, normalized
from .vocabulary import NORMAL, Vocabulary

# Bytes of assigned characters, controls aside. A vocabulary must be able to write them; any other byte that it lacks vanishes
# from the text, as in llama.cpp (SmolLM2 lacks 0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, and the first bytes of U+40000 to U+BFFFF).
ESSENTIAL_BYTES = (0x09, 0x0A, *range(0x20, 0x7F), *range(0x80, 0xC0), *range(0xC2, 0xF1))


def byte_symbols() -> list[str]:
    """The printable character by which byte-level BPE writes each byte: printable Latin-1 as itself, the others from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(b) if b in printable else chr(next(others)) for b in range(256)]


_SYMBOLS = frozenset(byte_symbols())
_BYTE_OF = {ord(symbol): byte for byte, symbol in enumerate(byte_symbols())}


def symbol_bytes(token: str) -> bytes:
    """The bytes that a token's symbols stand for; its own text when it is not written in byte symbols."""
    try:
        return bytes(_BYTE_OF[ord(symbol)] for symbol in token)
    except KeyError:
        return token.encode()


class ByteLevelBpe:
    """The library's BPE over byte symbols; `longest`, `encode`, `token_bytes` and `countable` as `tokenizer.Encoder` has them."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        merges: Sequence[tuple[str, str]],
        splitter: pre_tokenizers.PreTokenizer,
        guarded: frozenset[int],
        *,
        ignore_merges: bool = False,
        normalizer: normalizers.Normalizer | None = None,
    ) -> None:
        """`splitter` cuts words and writes them in byte symbols. `ignore_merges`: a word that is a token is that token, whatever the merges
        would make of it. `guarded` ids are no plain text: no merge may make them. Raises ModelFileError naming the key at fault."""
        ids, symbols = vocabulary.ids, byte_symbols()
        lacking = {byte: symbol for byte, symbol in enumerate(symbols) if symbol not in ids}
        for byte in ESSENTIAL_BYTES:
            if byte in lacking:
                raise ModelFileError(f"'{vocabulary.where}tokens' has no token for the byte 0x{byte:02X}: some text could not be written")
        # The library drops an unknown symbol before it merges, so that its neighbours would meet; llama.cpp drops it after.
        # So the lacking bytes get ids past the vocabulary, and `encode` drops those.
        self._size = len(vocabulary)
        mergeable = ids | {symbol: self._size + byte for byte, symbol in lacking.items()}
        for number in guarded:
            mergeable.pop(vocabulary.tokens[number], None)
        if not mergeable.keys() >= _SYMBOLS:
            raise ModelFileError(
                f"'{vocabulary.where}token_type' calls the token of a single byte a control token: plain text could make it"
            )
        self._lacking = bytes(lacking)
        self._bpe = tokenizers.Tokenizer(merging_model(vocabulary, mergeable, merges, ignore_merges=ignore_merges))
        self._bpe.pre_tokenizer = splitter
        self._normalizer = normalizer
        if normalizer is not None:
            self._bpe.normalizer = normalizer
        self._tokens, self._kinds = vocabulary.tokens, vocabulary.kinds
        self.longest = max(1, *map(len, vocabulary.tokens))  # merged tokens have one symbol per byte

    def encode(self, text: str, *, starts: bool) -> list[int]:
        ids = ids_of(self._bpe, text)
        return [number for number in ids if number < self._size] if self._lacking else ids

    def token_bytes(self, token_id: int) -> bytes:
        return symbol_bytes(self._tokens[token_id]) if self._kinds[token_id] == NORMAL else b""  # padding is no text

    def countable(self, text: bytes) -> int:
        if self._normalizer is not None:
            text = normalized(self._normalizer, text.decode()).encode()
        return len(text.translate(None, self._lacking))


def merging_model(
    vocabulary: Vocabulary, mergeable: dict[str, int], merges: Sequence[tuple[str, str]], *, ignore_merges: bool, **options: Any
) -> models.BPE:
    """The library's BPE. Raises ModelFileError naming the first merge that joins or makes what is not in `mergeable`."""
    if not all(left + right in mergeable for left, right in merges):  # the library panics on such a merge
        _name_merge_at_fault(vocabulary, mergeable, merges)
    try:
        return guard(lambda: models.BPE(mergeable, list(merges), ignore_merges=ignore_merges, **options), "vocabulary and merges")
    except ModelFileError:
        _name_merge_at_fault(vocabulary, mergeable, merges)
        raise


def _name_merge_at_fault(vocabulary: Vocabulary, mergeable: dict[str, int], merges: Sequence[tuple[str, str]]) -> None:
    ids = vocabulary.ids
    for rank, (left, right) in enumerate(merges):
        if left not in ids or right not in ids or left + right not in ids:
            raise ModelFileError(f"'{vocabulary.where}merges' number {rank} joins or makes a token that is not in the vocabulary")
        if not {left, right, left + right} <= mergeable.keys():
            raise ModelFileError(f"'{vocabulary.where}merges' number {rank} can make a control token out of plain text")
