"""GGUF files: from the header to a model with its tokenizer, and a few texts through it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from hybrid.shared_protocol.errors import HybridError
from hybrid.shared_protocol.gguf import read_gguf
from hybrid.shared_protocol.model import model_of
from hybrid.tests.fuzz.scratch import scratch, write
from hybrid.tests.support.gguf_writer import TensorSpec, tiny_metadata, write_gguf

TEXTS = ("", "Hello, world! 123", "<|im_start|>user\nüé 😊<|im_end|>\r\n\t", "\0\ufffd" * 3)


def run(data: bytes) -> None:
    try:
        model = model_of(read_gguf(write("fuzz.gguf", data)), name="fuzz", file_hash="0" * 64)
        for text in TEXTS:
            model.tokenizer.decode(model.tokenizer.encode(text))
        for number in (0, model.tokenizer.vocab_size - 1):
            model.tokenizer.token_text(number)
        if model.template is not None and len(model.template) < 2000:
            model.render_chat([{"role": "user", "content": TEXTS[2]}])
    except HybridError:
        return


def seeds() -> list[bytes]:
    """A whole model of 8 kB for some families, each of its kind, and pieces of one."""
    llama = _file(tiny_metadata(layers=1))
    return [llama, _file(tiny_metadata(layers=1, general__architecture="qwen2"), "qwen2"), llama[:4000], llama[:24], b"GGUF"]


def _file(metadata: Mapping[str, object], family: str = "llama", size: int = 2) -> bytes:
    """A network of one layer with vectors of two numbers."""
    renamed = {re.sub(r"^llama\.", f"{family}.", key): item for key, item in metadata.items()}
    sizes = {"embedding_length": size, "feed_forward_length": 1, "attention.head_count": 1, "attention.head_count_kv": 1}
    sizes |= {"rope.dimension_count": size, "context_length": 8}
    renamed |= {f"{family}.{key}": item for key, item in sizes.items()}

    def matrix(*shape: int) -> TensorSpec:
        kind, dtype = ("F16", np.float16) if len(shape) == 2 else ("F32", np.float32)
        return kind, shape, np.ones(shape, dtype).tobytes()

    tensors = {"token_embd.weight": matrix(320, size), "output_norm.weight": matrix(size)}
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        tensors[f"blk.0.{part}.weight"] = matrix(size, size)
    for part in ("attn_norm", "ffn_norm"):
        tensors[f"blk.0.{part}.weight"] = matrix(size)
    tensors |= {"blk.0.ffn_gate.weight": matrix(1, size), "blk.0.ffn_up.weight": matrix(1, size), "blk.0.ffn_down.weight": matrix(size, 1)}
    if family.startswith("qwen2"):
        tensors |= {f"blk.0.{part}.bias": matrix(size) for part in ("attn_q", "attn_k", "attn_v")}
    path: Path = write_gguf(scratch() / "seed.gguf", renamed, tensors)
    return path.read_bytes()
