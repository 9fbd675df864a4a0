"""A tokenizer whose ids are bytes: scripted pieces of bytes become text without a model."""

from collections.abc import Sequence

EOS, BOS = 256, 257


class ByteTokenizer:
    """The interface of `shared_protocol.tokenizer.Tokenizer`: ids 0..255 are bytes, 256 ends, 257 begins."""

    vocab_size = 258
    eos_ids = frozenset({EOS})
    eos_id = EOS
    bos_id = BOS
    special_texts = ()
    add_bos = False
    fingerprint = "bytes"

    def encode(self, text: str, literal_spans: Sequence[tuple[int, int]] = (), *, limit: int | None = None) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int], skip_special: bool = True) -> str:
        return b"".join(map(self.token_bytes, ids)).decode(errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        if not 0 <= token_id < self.vocab_size:
            raise IndexError(token_id)
        return bytes([token_id]) if token_id < 256 else b""

    def token_text(self, token_id: int) -> str:
        return {EOS: "<eos>", BOS: "<bos>"}.get(token_id) or self.token_bytes(token_id).decode(errors="replace")
