"""The tokenizer of a model: added tokens around an encoder of plain text, one BOS, and an id's bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from ..errors import ContextOverflow, InvalidRequest, ModelFileError
from .added_tokens import SPACES, AddedTokens
from .vocabulary import CONTROL, END_TOKEN_TEXTS, UNKNOWN, USER_DEFINED, Vocabulary


class Encoder(Protocol):
    """Plain text to ids, and back. Safe to use from several threads."""

    longest: int  # bytes of text that one token can stand for, at most; 0 when a token may stand for any number

    def encode(self, text: str, *, starts: bool) -> list[int]:
        """Ids of a text without added tokens. `starts`: nothing stands before it; else an added token does."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """What a normal token adds to the text."""
        ...

    def countable(self, text: bytes) -> int:
        """Bytes of the text that cannot vanish when it is encoded."""
        ...


class Tokenizer:
    """Safe to use from several threads."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        encoder: Encoder,
        added: AddedTokens,
        *,
        bos_id: int | None = None,
        add_bos: bool = False,
        end_ids: Sequence[int] = (),
        add_eos: bool = False,
        space_first: bool = False,
        fingerprint: str,
    ) -> None:
        """`space_first`: the encoder writes a space before a text; `decode` of a whole text takes it away."""
        self.vocab_size = len(vocabulary)
        self._tokens, self._kinds = vocabulary.tokens, vocabulary.kinds
        self._encoder = encoder
        self._added = added
        self._longest = max(encoder.longest, self._added.longest) if encoder.longest else 0
        named = (vocabulary.ids[text] for text in END_TOKEN_TEXTS & vocabulary.ids.keys())
        ends = [number for number in named if self._kinds[number] == CONTROL]
        self.eos_ids = frozenset({*end_ids, *ends})
        self.eos_id = end_ids[0] if end_ids else None
        self.bos_id = bos_id
        self.add_bos = add_bos and bos_id is not None
        self.add_eos = add_eos and self.eos_id is not None  # what the file says of finished texts; a prompt goes on, and gets none
        self.space_first = space_first
        for what, number in [("bos", bos_id), *(("end", number) for number in self.eos_ids)]:
            if number is not None and not 0 <= number < self.vocab_size:
                raise ModelFileError(f"the {what} token id {number} is outside the vocabulary of {self.vocab_size}")
        self._bytes: list[bytes | None] = [None] * self.vocab_size
        decided = repr((fingerprint, self.bos_id, self.add_bos, self.eos_id, sorted(self.eos_ids)))
        self.fingerprint = hashlib.sha256(decided.encode()).hexdigest()

    @property
    def special_texts(self) -> tuple[str, ...]:
        """Texts that `encode` turns into one token each and that no user may write, the longest first."""
        return self._added.guarded_texts

    def encode(
        self,
        text: str,
        literal_spans: Sequence[tuple[int, int]] = (),
        *,
        add_bos: bool | None = None,
        add_eos: bool = False,
        limit: int | None = None,
    ) -> list[int]:
        """Token ids of `text`. Special texts match only where they touch no literal span, (start, end) in characters, ascending.

        BOS is put first when the model asks for it (or `add_bos` does) unless the text brings its own; EOS last only on request,
        whatever the model's file says, since a prompt is there to be continued. The interpreter is free for other threads meanwhile.
        Raises InvalidRequest for text that is no Unicode; ContextOverflow, without looking further, for text of so many bytes that
        its tokens must be more than `limit`.
        """
        try:
            written = text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"the text holds half a surrogate pair (U+{ord(text[error.start]):04X}), which no encoding can write"
            ) from None
        if limit is not None and (fewest := self._fewest(written)) > limit:
            raise ContextOverflow(asked=fewest, limit=limit, at_least=True)
        ids: list[int] = []
        starts = True
        for piece in self._added.split(text, literal_spans):
            ids += [piece] if isinstance(piece, int) else self._encoder.encode(piece, starts=starts)
            starts = False
        wanted = self.add_bos if add_bos is None else add_bos
        if wanted and self.bos_id is not None and ids[:1] != [self.bos_id]:
            ids.insert(0, self.bos_id)
        if add_eos and self.eos_id is not None and ids[-1:] != [self.eos_id]:
            ids.append(self.eos_id)
        return ids

    def decode(self, ids: Iterable[int], skip_special: bool = True, *, whole: bool = False) -> str:
        """The text of `ids`; bytes that form no character become U+FFFD. Control tokens are shown only on request.

        `ids` continue something, unless they are a `whole` text: then the space is taken away that the tokenizer wrote before it.
        Raises InvalidRequest for an id outside the vocabulary.
        """
        ids = list(ids)
        for number in ids:
            if not 0 <= number < self.vocab_size:
                raise InvalidRequest(f"the token id {number} is outside the vocabulary of {self.vocab_size}", param="tokens")
        parts = [self.token_bytes(number) or (b"" if skip_special else self._tokens[number].encode()) for number in ids]
        first = next((place for place, number in enumerate(ids) if self.token_bytes(number)), None)
        if whole and self.space_first and first is not None:
            parts[first] = parts[first].removeprefix(b" ")
        return b"".join(parts).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        """What the token adds to the text, wherever it stands: b"" for control tokens. Raises IndexError outside the vocabulary."""
        if token_id < 0:
            raise IndexError(token_id)
        known = self._bytes[token_id]
        if known is None:
            known = self._bytes[token_id] = self._compute_bytes(token_id)
        return known

    def token_text(self, token_id: int) -> str:
        """The token as it is shown to people: its own text, control tokens included; U+FFFD for part of a character."""
        return self.decode([token_id], skip_special=False)

    def _compute_bytes(self, token_id: int) -> bytes:
        kind = self._kinds[token_id]
        if kind in (CONTROL, UNKNOWN):
            return b""
        return self._tokens[token_id].encode() if kind == USER_DEFINED else self._encoder.token_bytes(token_id)

    def _fewest(self, written: bytes) -> int:
        """A lower bound on the number of tokens."""
        if not self._longest:
            return 0
        if self._added.strips:
            written = written.decode().translate(_NO_SPACES).encode()
        return -(-self._encoder.countable(written) // self._longest)


_NO_SPACES = dict.fromkeys(map(ord, SPACES))


def fingerprint_of(parts: Sequence[str], strings: Sequence[Sequence[str]], numbers: Sequence[Iterable[float]]) -> str:
    """SHA-256 over everything that decides ids: strings with their lengths in front, so that no two splits are alike."""
    digest = hashlib.sha256()
    for texts in (["hybrid-vocabulary-2", *parts], *strings):
        encoded = [text.encode() for text in texts]
        digest.update(np.array([len(encoded), *map(len, encoded)], "<u8").tobytes())
        digest.update(b"".join(encoded))
    for values in numbers:
        digest.update(np.array(values, "<f8").tobytes())
    return digest.hexdigest()
