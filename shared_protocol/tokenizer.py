"""Text to token ids and back, from a GGUF file's own metadata.

Specials (control and user-defined tokens) are matched first, outside the literal spans; what lies between two specials is one
continuous text for the pre-tokenizer and the merges, whether it is literal or not:

    text      <|im_start|>user\\n say <|im_end|> <|im_end|>\\n
    literal                          ^^^^^^^^^^                 the user typed it: stays text
    pieces    S          T--------------------  S         T-
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import tokenizers
from tokenizers import models, pre_tokenizers

from .errors import ContextOverflow, InvalidRequest, ModelFileError
from .gguf import GgufFile

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

# The pre-tokenizers by the name that GGUF files carry; each is proven against llama.cpp in the tests.
PRE_TOKENIZERS: Mapping[str, Callable[[], pre_tokenizers.PreTokenizer]] = MappingProxyType(
    {
        "smollm": lambda: pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
        ),
    }
)
END_TOKEN_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
END_TOKEN_TEXTS = frozenset({"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>", "</s>"})
# Bytes of assigned characters, controls aside. A vocabulary must be able to write them; any other byte that it lacks vanishes
# from the text, as in llama.cpp (SmolLM2 lacks 0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, and the first bytes of U+40000 to U+BFFFF).
ESSENTIAL_BYTES = (0x09, 0x0A, *range(0x20, 0x7F), *range(0x80, 0xC0), *range(0xC2, 0xF1))


def byte_symbols() -> list[str]:
    """The printable character by which byte-level BPE writes each byte: printable Latin-1 as itself, the others from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(b) if b in printable else chr(next(others)) for b in range(256)]


_BYTE_OF = {ord(symbol): byte for byte, symbol in enumerate(byte_symbols())}


class Tokenizer:
    """Byte-level BPE. Safe to use from several threads."""

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Sequence[str],
        pre: str,
        token_types: Sequence[int],
        *,
        bos_id: int | None = None,
        add_bos: bool = False,
        end_ids: Sequence[int] = (),
        template: str | None = None,
    ) -> None:
        if pre not in PRE_TOKENIZERS:
            raise ModelFileError(f"the pre-tokenizer {pre!r:.40} is not supported; supported: {', '.join(PRE_TOKENIZERS)}")
        if len(token_types) != len(tokens):
            raise ModelFileError(f"'tokenizer.ggml.token_type' has {len(token_types)} entries for {len(tokens)} tokens")
        self.vocab_size = len(tokens)
        self._tokens = list(tokens)
        self._types = [int(kind) for kind in token_types]
        vocabulary = {token: number for number, token in enumerate(self._tokens)}
        if len(vocabulary) != len(tokens):
            raise ModelFileError("'tokenizer.ggml.tokens' holds a token twice")
        lacking = {byte: symbol for byte, symbol in enumerate(byte_symbols()) if symbol not in vocabulary}
        for byte in ESSENTIAL_BYTES:
            if byte in lacking:
                raise ModelFileError(f"'tokenizer.ggml.tokens' has no token for the byte 0x{byte:02X}: some text could not be written")
        pairs = _merge_pairs(merges, vocabulary)
        for token in (*byte_symbols(), *(left + right for left, right in pairs)):
            if token in vocabulary and self._types[vocabulary[token]] == CONTROL:
                raise ModelFileError(f"'tokenizer.ggml.merges' can make the control token {token!r:.40} out of plain text")
        # The library drops an unknown symbol before it merges, so that its neighbours would meet; llama.cpp drops it after.
        # So the lacking bytes get ids past the vocabulary, and `encode` drops those.
        vocabulary |= {symbol: self.vocab_size + byte for byte, symbol in lacking.items()}
        self._lacking = bytes(lacking)
        self._bpe = tokenizers.Tokenizer(models.BPE(vocabulary, pairs))
        self._bpe.pre_tokenizer = PRE_TOKENIZERS[pre]()
        special_ids = [number for number, kind in enumerate(self._types) if kind in (CONTROL, USER_DEFINED) and self._tokens[number]]
        # llama.cpp's order: the longest first, over the whole text, then the next
        self._specials = sorted(((self._tokens[number], number) for number in special_ids), key=lambda item: -len(item[0].encode()))
        # bytes that one token can stand for: merged ones have one symbol per byte, specials are written as they are
        self._longest = max([1, *map(len, self._tokens), *(len(text.encode()) for text, _ in self._specials)])
        ends = {self._tokens[number]: number for number, kind in enumerate(self._types) if kind == CONTROL}
        self.eos_ids = frozenset({*end_ids, *(number for text, number in ends.items() if text in END_TOKEN_TEXTS)})
        self.eos_id = end_ids[0] if end_ids else None
        self.bos_id = bos_id
        self.add_bos = add_bos and bos_id is not None
        for what, number in [("bos", bos_id), *(("end", number) for number in self.eos_ids)]:
            if number is not None and not 0 <= number < self.vocab_size:
                raise ModelFileError(f"the {what} token id {number} is outside the vocabulary of {self.vocab_size}")
        self._bytes: list[bytes | None] = [None] * self.vocab_size
        specials = repr((self.bos_id, self.add_bos, self.eos_id, sorted(self.eos_ids)))
        self.fingerprint = _fingerprint(["gpt2", pre, specials, repr(template)], self._tokens, merges, self._types)

    @property
    def special_texts(self) -> tuple[str, ...]:
        """Texts that `encode` turns into one token each, the longest first."""
        return tuple(text for text, _ in self._specials)

    def encode(
        self, text: str, literal_spans: Sequence[tuple[int, int]] = (), *, add_bos: bool | None = None, limit: int | None = None
    ) -> list[int]:
        """Token ids of `text`. Specials match only where they touch no literal span, (start, end) in characters, ascending.

        BOS is put first when the model asks for it (or `add_bos` does) unless the text brings its own. The interpreter is free for other
        threads meanwhile. Raises InvalidRequest for text that is no Unicode; ContextOverflow, without looking further, for text of so
        many bytes that its tokens must be more than `limit`.
        """
        try:
            written = text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"the text holds half a surrogate pair (U+{ord(text[error.start]):04X}), which no encoding can write"
            ) from None
        fewest = -(-len(written.translate(None, self._lacking)) // self._longest)
        if limit is not None and fewest > limit:
            raise ContextOverflow(asked=fewest, limit=limit, at_least=True)
        ids: list[int] = []
        for piece in self._split(text, literal_spans):
            if isinstance(piece, int):
                ids.append(piece)
            else:
                ids.extend(self._bpe.encode_batch_fast([piece], add_special_tokens=False)[0].ids)  # `encode` would keep the GIL
        if self._lacking:
            ids = [number for number in ids if number < self.vocab_size]
        wanted = self.add_bos if add_bos is None else add_bos
        if wanted and self.bos_id is not None and ids[:1] != [self.bos_id]:
            ids.insert(0, self.bos_id)
        return ids

    def decode(self, ids: Iterable[int], skip_special: bool = True) -> str:
        """The text of `ids`; bytes that form no character become U+FFFD. Control tokens are shown only on request.

        Raises InvalidRequest for an id outside the vocabulary.
        """
        ids = list(ids)
        for number in ids:
            if not 0 <= number < self.vocab_size:
                raise InvalidRequest(f"the token id {number} is outside the vocabulary of {self.vocab_size}", param="tokens")
        parts = (self.token_bytes(number) or (b"" if skip_special else self._tokens[number].encode()) for number in ids)
        return b"".join(parts).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        """What the token adds to the text: b"" for control tokens. Raises IndexError outside the vocabulary."""
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
        text, kind = self._tokens[token_id], self._types[token_id]
        if kind in (CONTROL, UNKNOWN):
            return b""
        if kind != NORMAL:
            return text.encode()
        try:
            return bytes(_BYTE_OF[ord(symbol)] for symbol in text)
        except KeyError:  # not written in byte symbols: the text is the token
            return text.encode()

    def _split(self, text: str, literal_spans: Sequence[tuple[int, int]]) -> Iterator[str | int]:
        """Yield texts and the ids of the specials between them, in order; empty texts are left out."""
        literal = bytearray(len(text))
        for start, end in literal_spans:
            literal[start:end] = b"\1" * (end - start)
        fragments: list[tuple[int, int, int]] = [(0, len(text), -1)]  # start, end, special id or -1
        for special, number in self._specials:
            if special not in text:
                continue
            fragments = [part for fragment in fragments for part in _cut(text, fragment, special, number, literal)]
        for start, end, number in fragments:
            if number >= 0:
                yield number
            elif end > start:
                yield text[start:end]


def tokenizer_of(gguf: GgufFile) -> Tokenizer:
    """Build the tokenizer that a GGUF file describes. Raises ModelFileError naming the key at fault."""
    meta = gguf.metadata
    kind = meta.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise ModelFileError(f"{gguf.path.name}: the tokenizer model {kind!r:.40} is not supported; supported: gpt2 (byte-level BPE)")
    pre = meta.get("tokenizer.ggml.pre")
    if not isinstance(pre, str):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.pre' is missing: guessing it would change the tokens")
    tokens, merges = (_strings(gguf, f"tokenizer.ggml.{key}") for key in ("tokens", "merges"))
    types = meta.get("tokenizer.ggml.token_type")
    if types is None:
        types = np.full(len(tokens), NORMAL)
    if not isinstance(types, np.ndarray):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.token_type' must be an array of integers")
    ends = [number for key in END_TOKEN_KEYS if (number := _id(gguf, key)) is not None]
    template = meta.get("tokenizer.chat_template")
    add_bos = meta.get("tokenizer.ggml.add_bos_token", False) is True
    bos = _id(gguf, "bos_token_id")
    return Tokenizer(
        tokens,
        merges,
        pre,
        types.tolist(),
        bos_id=bos,
        add_bos=add_bos,
        end_ids=ends,
        template=template if isinstance(template, str) else None,
    )


def _strings(gguf: GgufFile, key: str) -> list[str]:
    value = gguf.metadata.get(key)
    if not isinstance(value, list):
        raise ModelFileError(f"{gguf.path.name}: the key {key!r} must be an array of strings")
    return value


def _id(gguf: GgufFile, key: str) -> int | None:
    value = gguf.metadata.get(f"tokenizer.ggml.{key}")
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.ggml.{key}' must be a token id, found {type(value).__name__}")
    return value


def _merge_pairs(merges: Sequence[str], vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    pairs = []
    for rank, merge in enumerate(merges):
        left, _, right = merge.partition(" ")
        if left not in vocabulary or right not in vocabulary or left + right not in vocabulary:
            raise ModelFileError(f"'tokenizer.ggml.merges' number {rank} joins or makes a token that is not in the vocabulary")
        pairs.append((left, right))
    return pairs


def _cut(text: str, fragment: tuple[int, int, int], special: str, number: int, literal: bytearray) -> Iterator[tuple[int, int, int]]:
    """Cut one fragment at every occurrence of `special` that touches nothing literal."""
    start, end, kind = fragment
    if kind >= 0:
        yield fragment
        return
    search = start
    while (found := text.find(special, search, end)) >= 0:
        after = found + len(special)
        if literal.find(1, found, after) >= 0:
            search = found + 1
            continue
        yield start, found, -1
        yield found, after, number
        start = search = after
    yield start, end, -1


def _fingerprint(parts: Sequence[str], tokens: Sequence[str], merges: Sequence[str], types: Sequence[int]) -> str:
    """SHA-256 over everything that decides ids: strings with their lengths in front, so that no two splits are alike."""
    digest = hashlib.sha256()
    for strings in (["hybrid-vocabulary-1", *parts], tokens, merges):
        encoded = [string.encode() for string in strings]
        digest.update(np.array([len(encoded), *map(len, encoded)], "<u8").tobytes())
        digest.update(b"".join(encoded))
    digest.update(np.array(types, "<i4").tobytes())
    return digest.hexdigest()
