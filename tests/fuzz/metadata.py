"""GGUF files that are well formed and say wrong things: the input is a list of edits to the metadata and tensors of a sound model.

It is one byte for the model, and then up to sixteen times: a byte for the key or tensor, one for what happens to it, what that needs.
"""

from __future__ import annotations

from functools import cache

from hybrid.tests.fuzz import gguf
from hybrid.tests.fuzz.scratch import scratch
from hybrid.tests.support.gguf_writer import TensorSpec, write_gguf
from hybrid.tests.support.tiny_families import TINY, tiny_family_metadata, tiny_family_tensors

_NUMBERS = (0, 1, -1, 2, 3, 64, 255, 319, 320, 321, 1 << 16, (1 << 31) - 1, (1 << 32) - 1)
_FLOATS = (0.0, -1.0, 1e-5, 0.5, 1.0, 8.0, 1e4, 3e38, float("inf"), float("nan"))
BASES = [*((name, "gpt2") for name in TINY), ("llama", "llama"), ("gemma3", "llama"), ("llama", "t5")]
_MORE = (
    "rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.attn_factor", "rope.freq_base_swa",
    "attention.sliding_window", "attention.key_length", "attention.value_length", "attention.scale", "attn_logit_softcapping",
    "final_logit_softcapping", "expert_count", "attention.sliding_window_pattern",
)  # fmt: skip
_TOKENIZER = ("tokenizer.ggml.scores", "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.add_eos_token")


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def text(self) -> str:
        length = self.byte()
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8", "replace")


def run(data: bytes) -> None:
    edits = _Bytes(data)
    name, kind = BASES[edits.byte() % len(BASES)]
    family = TINY[name].family
    metadata, tensors = {**tiny_family_metadata(name), **_tokenizer(kind)}, dict(_tensors(name))
    keys = [*metadata, *(f"{family}.{key}" for key in _MORE), *_TOKENIZER]
    for _ in range(16):
        if edits.at >= len(data):
            break
        key = keys[edits.byte() % len(keys)]
        action = edits.byte() % 12
        if action < 10:
            _edit(metadata, key, action, edits)
        else:
            name = list(tensors)[edits.byte() % len(tensors)]
            if action == 10 and len(tensors) > 1:
                del tensors[name]
            elif action == 11:
                tensors[edits.text() or "x"] = tensors[name]
    gguf.run(write_gguf(scratch() / "edited.gguf", metadata, tensors).read_bytes())


def _edit(metadata: dict[str, object], key: str, action: int, edits: _Bytes) -> None:
    old = metadata.get(key)
    if action == 0:
        metadata.pop(key, None)
    elif action == 1:
        metadata[key] = abs(_NUMBERS[edits.byte() % len(_NUMBERS)])
    elif action == 2:
        metadata[key] = _FLOATS[edits.byte() % len(_FLOATS)]
    elif action == 3:
        metadata[key] = edits.text()
    elif action == 4:
        metadata[key] = bool(edits.byte() & 1)
    elif action == 5 and isinstance(old, list):
        metadata[key] = old[: edits.byte()] or old
    elif action == 6 and isinstance(old, list):
        changed = list(old)
        changed[edits.byte() % len(old)] = edits.text() if isinstance(old[0], str) else type(old[0])(edits.byte())
        metadata[key] = changed
    elif action == 7 and isinstance(old, list):
        metadata[key] = [*old, *old[: edits.byte()]]
    elif action == 8 and isinstance(old, list):
        one, other = edits.byte() % len(old), edits.byte() % len(old)
        changed = list(old)
        changed[one], changed[other] = old[other], old[one]
        metadata[key] = changed
    elif action == 9:
        metadata[key] = [edits.byte() - 128 for _ in range(1 + edits.byte())] if edits.byte() & 1 else [edits.text(), edits.text()]


@cache
def _tensors(name: str) -> dict[str, TensorSpec]:
    return tiny_family_tensors(name, weights="Q4_1", embedding="Q8_0")


def _tokenizer(kind: str) -> dict[str, object]:
    """The keys of a small vocabulary of pieces, instead of the byte-level one."""
    if kind == "gpt2":
        return {}
    pieces = ["▁", "e", "l", "o", "h", "▁h", "el", "▁hel", "lo", "<|im_start|>", "<|im_end|>"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces]
    tokens += [chr(0x4E00 + number) for number in range(320 - len(tokens))]
    kinds = [2, 3, 3] + [6] * 256 + [1] * 9 + [3, 4] + [1] * (320 - 270)
    scores = [0.0] * 259 + [-float(number) for number in range(320 - 259)]
    return {
        "tokenizer.ggml.model": kind,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
    }


def seeds() -> list[bytes]:
    """Every base as it is, and one edit of every kind to every other key of five of them."""
    edited = (0, 4, 8, len(BASES) - 3, len(BASES) - 1)
    every = [bytes([base, key, action, 7, 3, 3, 65, 66]) for base in edited for key in range(0, 44, 2) for action in range(12)]
    return [*(bytes([number]) for number in range(len(BASES))), *every]
