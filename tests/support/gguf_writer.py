"""Writes GGUF files for tests: any metadata and tensors, and a whole tiny Llama with random weights.

Independent of the reader: plain `struct`, from the published layout.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from hybrid.quant.formats import quantize
from hybrid.shared_protocol.gguf import TYPE_IDS
from hybrid.shared_protocol.tokenizer import byte_symbols

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_WORDS = "the and that with have this from they which would there their what about when make like time just know people into year good some"

# (type name, shape with rows first, packed bytes)
TensorSpec = tuple[str, tuple[int, ...], bytes]


def string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def value(item: object) -> bytes:
    """Type and value of one key: bool, int (u32), float (f32), str, list of str, list of int (i32)."""
    match item:
        case bool():
            return struct.pack("<IB", 7, item)
        case int():
            return struct.pack("<II", 4, item)
        case float():
            return struct.pack("<If", 6, item)
        case str():
            return struct.pack("<I", 8) + string(item)
        case [float(), *_]:
            return struct.pack("<IIQ", 9, 6, len(item)) + struct.pack(f"<{len(item)}f", *item)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(map(string, item))
        case [*_]:
            return struct.pack("<IIQ", 9, 5, len(item)) + struct.pack(f"<{len(item)}i", *item)
    raise TypeError(type(item))


def tensor_header(name: str | bytes, dims: Sequence[int], type_id: int, offset: int, num_dims: int | None = None) -> bytes:
    """`dims` as the file has them: fastest first."""
    return string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims) if num_dims is None else num_dims, *dims, type_id, offset)


def header(num_tensors: int, num_keys: int, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_keys)


def write_gguf(path: Path, metadata: Mapping[str, object], tensors: Mapping[str, TensorSpec], alignment: int = 32) -> Path:
    parts = [header(len(tensors), len(metadata))]
    parts += [string(key) + value(item) for key, item in metadata.items()]
    data, offset = [], 0
    for name, (type_name, shape, raw) in tensors.items():
        parts.append(tensor_header(name, list(reversed(shape)), TYPE_IDS[type_name], offset))
        padding = -len(raw) % alignment
        data.append(raw + bytes(padding))
        offset += len(raw) + padding
    head = b"".join(parts)
    path.write_bytes(head + bytes(-len(head) % alignment) + b"".join(data))
    return path


def tiny_vocabulary(size: int = 320) -> tuple[list[str], list[str], list[int]]:
    """Tokens, merges and token types of a byte-level BPE: three specials, the 256 bytes, then merges of common words."""
    tokens = [*SPECIALS, *byte_symbols()]
    merges: list[str] = []
    for word in _WORDS.split():
        left = "Ġ"
        for letter in word:
            if len(tokens) < size and left + letter not in tokens:
                merges.append(f"{left} {letter}")
                tokens.append(left + letter)
            left += letter
    assert len(tokens) == size, f"the words give {len(tokens)} tokens only"
    return tokens, merges, [3] * len(SPECIALS) + [1] * (size - len(SPECIALS))


def tiny_metadata(vocab_size: int = 320, layers: int = 2, template: str = CHATML, **changes: object) -> dict[str, object]:
    """Metadata of the tiny Llama; `changes` override keys (with `__` for `.`), None removes one."""
    tokens, merges, types = tiny_vocabulary(vocab_size)
    metadata: dict[str, object] = {
        "general.architecture": "llama",
        "general.name": "tiny",
        "general.license": "apache-2.0",
        "llama.block_count": layers,
        "llama.context_length": 512,
        "llama.embedding_length": 64,
        "llama.feed_forward_length": 96,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.rope.freq_base": 10000.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": vocab_size,
        "llama.rope.dimension_count": 16,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": template,
    }
    for key, item in changes.items():
        metadata[key.replace("__", ".")] = item
    return {key: item for key, item in metadata.items() if item is not None}


def tiny_tensors(
    seed: int = 0, vocab_size: int = 320, layers: int = 2, weights: str = "Q4_1", embedding: str = "Q8_0"
) -> dict[str, TensorSpec]:
    """Random weights: hidden 64, 4 query and 2 key heads of 16, feed-forward 96, tied embedding."""
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int, type_name: str, spread: float) -> TensorSpec:
        values = rng.standard_normal((rows, columns)).astype(np.float32) * np.float32(spread)
        return type_name, (rows, columns), quantize(values, type_name).tobytes()

    def norm() -> TensorSpec:
        return "F32", (64,), (1 + 0.1 * rng.standard_normal(64)).astype(np.float32).tobytes()

    tensors: dict[str, TensorSpec] = {"token_embd.weight": matrix(vocab_size, 64, embedding, 0.5)}
    for number in range(layers):
        layer = f"blk.{number}."
        tensors[f"{layer}attn_norm.weight"] = norm()
        for part, rows, columns in [("attn_q", 64, 64), ("attn_k", 32, 64), ("attn_v", 32, 64), ("attn_output", 64, 64)]:
            tensors[f"{layer}{part}.weight"] = matrix(rows, columns, weights, 0.2)
        tensors[f"{layer}ffn_norm.weight"] = norm()
        for part, rows, columns in [("ffn_gate", 96, 64), ("ffn_up", 96, 64), ("ffn_down", 64, 96)]:
            tensors[f"{layer}{part}.weight"] = matrix(rows, columns, weights, 0.2)
    tensors["output_norm.weight"] = norm()
    return tensors


def write_tiny_llama(path: Path, seed: int = 0, vocab_size: int = 320, layers: int = 2, weights: str = "Q4_1", **changes: object) -> Path:
    """A valid Llama of 100 kB. Another `seed` gives other weights under the same vocabulary."""
    metadata = tiny_metadata(vocab_size, layers, **changes)  # type: ignore[arg-type]
    return write_gguf(path, metadata, tiny_tensors(seed, vocab_size, layers, weights))
