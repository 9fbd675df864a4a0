"""The `tokenizers` library's pieces, with its failures in words: it is Rust, and what it did not foresee is a panic.

A panic is no Exception in Python, and the process lives on; but it would pass every `except Exception` of a server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import tokenizers
from tokenizers import normalizers

from ..errors import ModelFileError

T = TypeVar("T")


def guard(call: Callable[[], T], what: str) -> T:
    """The call's result. Raises ModelFileError "WHAT: reason" for whatever the library raises."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit, MemoryError, ModelFileError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelFileError(f"{what}: {str(error).splitlines()[0] if str(error) else type(error).__name__:.120}") from None


def ids_of(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
    """Ids of a plain text. The interpreter is free meanwhile, which it is not in `Tokenizer.encode`."""
    ids: list[int] = guard(
        lambda: tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids, "the tokenizer's own patterns fail on this text"
    )
    return ids


def normalized(normalizer: normalizers.Normalizer, text: str) -> str:
    written: str = guard(lambda: normalizer.normalize_str(text), "the tokenizer's normalizer fails on this text")
    return written


class LibraryEncoder:
    """A whole pipeline of the library: BPE over SentencePiece's characters, or Unigram.

    `longest`, `encode`, `token_bytes` and `countable` as `tokenizer.Encoder` has them.
    """

    def __init__(
        self,
        first: tokenizers.Tokenizer,
        later: tokenizers.Tokenizer,
        ids: Sequence[int] | None,
        pieces: Sequence[bytes],
        *,
        prepare: Callable[[str], str] | None = None,
        bounded: bool,
    ) -> None:
        """`first` encodes what begins a text, `later` what follows an added token; `ids` are the vocabulary's by the library's, the same
        when None; `pieces` each token's bytes; `prepare` normalises before the library sees a text. Not `bounded`: one token may stand
        for any number of characters that the vocabulary does not know."""
        self._first, self._later, self._ids = first, later, ids
        self._pieces, self._prepare = pieces, prepare
        self.longest = max(1, *map(len, pieces)) if bounded else 0

    def encode(self, text: str, *, starts: bool) -> list[int]:
        if self._prepare is not None:
            text = self._prepare(text)
        ids = ids_of(self._first if starts else self._later, text)
        return ids if self._ids is None else [self._ids[number] for number in ids]

    def token_bytes(self, token_id: int) -> bytes:
        return self._pieces[token_id]

    def countable(self, text: bytes) -> int:
        if self._first.normalizer is None:
            return len(text)
        return len(normalized(self._first.normalizer, text.decode()).replace("\u2581", " ").encode())
