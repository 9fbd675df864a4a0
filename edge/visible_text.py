"""The text of committed tokens, of which the cloud says how many bytes may be shown."""

from __future__ import annotations

from collections.abc import Sequence

from ..shared_protocol.detokenizer import Detokenizer
from ..shared_protocol.errors import ProtocolError
from ..shared_protocol.tokenizer import Tokenizer


class VisibleText:
    """`shown` grows and is never taken back. Lengths are in UTF-8 bytes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._detokenizer = Detokenizer(tokenizer)
        self._bytes = bytearray()
        self._shown = 0

    @property
    def shown(self) -> str:
        return self._bytes[: self._shown].decode("utf-8")

    def extend(self, ids: Sequence[int]) -> None:
        for token_id in ids:
            self._bytes += self._detokenizer.push(token_id).encode("utf-8")

    def replace(self, ids: Sequence[int]) -> None:
        """These are all the tokens. Raises ProtocolError when what was shown is not the beginning of their text."""
        before = bytes(self._bytes[: self._shown])
        self._detokenizer = Detokenizer(self._tokenizer)
        self._bytes = bytearray()
        self.extend(ids)
        if not self._bytes.startswith(before):
            raise ProtocolError("the cloud takes back text that was shown")

    def show(self, length: int, *, last: bool) -> str:
        """What may be shown beyond what has been, `length` bytes in all. `last`: no token follows, half a character ends here.

        Raises ProtocolError for a length that runs backward, past the text, or into a character.
        """
        if last:
            self._bytes += self._detokenizer.flush().encode("utf-8")
        if not self._shown <= length <= len(self._bytes):
            raise ProtocolError(f"the cloud lets {length} bytes be seen: {self._shown} are, and there are {len(self._bytes)}")
        try:
            text = self._bytes[self._shown : length].decode("utf-8")
        except UnicodeDecodeError:
            raise ProtocolError(f"the cloud cuts a character at byte {length}") from None
        self._shown = length
        return text
