"""Token ids to text while they arrive, never splitting a character."""

from __future__ import annotations

import codecs

from .tokenizer import Tokenizer

_Utf8 = codecs.getincrementaldecoder("utf-8")


class Detokenizer:
    """One stream of tokens. The pieces joined are `tokenizer.decode` of all ids, however they were pushed.

    Bytes that may still become a character are held back; U+FFFD stands for bytes that no longer can, or that `flush` finds left.
    """

    __slots__ = ("_tokenizer", "_utf8")

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = _Utf8("replace")

    def push(self, token_id: int) -> str:
        """Take one token; return the text that is complete now. Costs the token's bytes, not the text's length."""
        return self._utf8.decode(self._tokenizer.token_bytes(token_id))

    def flush(self) -> str:
        """End the stream; return U+FFFD for a character that never became whole, else ""."""
        return self._utf8.decode(b"", final=True)
