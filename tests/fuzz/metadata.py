"""GGUF files that are well formed and say wrong things: the input is a list of edits to the metadata and tensors of a sound model.

1 byte  which key or tensor | 1 byte  what happens to it | what that needs
"""

from __future__ import annotations

import struct

from hybrid.tests.fuzz import gguf
from hybrid.tests.fuzz.scratch import scratch
from hybrid.tests.support.gguf_writer import tiny_metadata, tiny_tensors, write_gguf

_NUMBERS = (0, 1, -1, 2, 3, 64, 255, 319, 320, 321, 1 << 16, (1 << 31) - 1, (1 << 32) - 1)
_FLOATS = (0.0, -1.0, 1e-5, 0.5, 1.0, 8.0, 1e4, 3e38, float("inf"), float("nan"))
_FAMILIES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3", "mistral", "none")
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
    family = _FAMILIES[edits.byte() % len(_FAMILIES)]
    metadata: dict[str, object] = {
        key.replace("llama.", f"{family}."): item for key, item in tiny_metadata(layers=1, general__architecture=family).items()
    }
    tensors = tiny_tensors(layers=1)
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
        changed[edits.byte() % len(old)] = edits.text() if isinstance(old[0], str) else edits.byte()
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


def seeds() -> list[bytes]:
    """One edit of every kind to every key, in the three families of most code, and none at all."""
    every = [bytes([family, key, action, 7, 3, 3, 65, 66]) for family in (0, 1, 4) for key in range(0, 38, 2) for action in range(12)]
    return [*(bytes([family]) for family in range(len(_FAMILIES))), *every, struct.pack("12B", 0, 1, 3, 4, *b"yarn", 24, 1, 2, 0)]
