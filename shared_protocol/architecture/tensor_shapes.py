"""Which tensors a network has, under which names, and how files that store some of them as one are brought to these names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..errors import ModelFileError
from ..gguf import Tensor
from .architecture import Architecture

# fmt: off
WEIGHT_TYPES = (  # of matrices; vectors are F32
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "F16", "BF16", "F32",
)
# fmt: on


def expected_shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """Name and shape (rows, columns) of every tensor that the network has, no more and no less."""
    hidden, ffn, vocab = architecture.hidden_size, architecture.ffn_size, architecture.vocab_size
    query, key = architecture.num_heads * architecture.head_dim, architecture.num_kv_heads * architecture.head_dim
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (hidden,),
        "attn_q.weight": (query, hidden),
        "attn_k.weight": (key, hidden),
        "attn_v.weight": (key, hidden),
        "attn_output.weight": (hidden, query),
        "ffn_norm.weight": (hidden,),
        "ffn_gate.weight": (ffn, hidden),
        "ffn_up.weight": (ffn, hidden),
        "ffn_down.weight": (hidden, ffn),
    }
    if architecture.qkv_bias:
        layer |= {"attn_q.bias": (query,), "attn_k.bias": (key,), "attn_v.bias": (key,)}
    if architecture.qk_norm:
        layer |= {"attn_q_norm.weight": (architecture.head_dim,), "attn_k_norm.weight": (architecture.head_dim,)}
    if architecture.post_norms:
        layer |= {"post_attention_norm.weight": (hidden,), "post_ffw_norm.weight": (hidden,)}
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocab, hidden), "output_norm.weight": (hidden,)}
    if not architecture.tied_embeddings:
        shapes["output.weight"] = (vocab, hidden)
    for number in range(architecture.num_layers):
        shapes |= {f"blk.{number}.{part}": shape for part, shape in layer.items()}
    return shapes


def network_tensors(file: str, tensors: Mapping[str, Tensor], architecture: Architecture) -> dict[str, Tensor]:
    """The tensors of `expected_shapes`, as views; those that a file stores as one are split. Raises ModelFileError for any other set."""
    expected = expected_shapes(architecture)
    found = split_fused(file, tensors, architecture)
    for name, shape in expected.items():
        tensor = found.get(name)
        if tensor is None:
            raise ModelFileError(f"{file}: the tensor {name!r} is missing")
        if tensor.shape != shape:
            raise ModelFileError(f"{file}: the tensor {name!r} has the shape {tensor.shape}, expected {shape}")
        supported = WEIGHT_TYPES if len(shape) == 2 else ("F32",)
        if tensor.type_name not in supported:
            raise ModelFileError(f"{file}: the tensor {name!r} has the type {tensor.type_name}; supported here: {', '.join(supported)}")
    for name in found:
        if name not in expected:  # a bias or a rotary factor that we would ignore changes every answer
            raise ModelFileError(f"{file}: the tensor {name!r} is not part of this architecture as it is supported")
    return found


def split_fused(file: str, tensors: Mapping[str, Tensor], architecture: Architecture) -> dict[str, Tensor]:
    """Split what stands below one another in one tensor, without copying. Raises ModelFileError when the rows do not add up.

    attn_qkv   q | k | v        num_heads, num_kv_heads and again num_kv_heads heads of rows
    ffn_up     gate | up        where a layer has no ffn_gate and twice the rows
    """
    query, key = architecture.num_heads * architecture.head_dim, architecture.num_kv_heads * architecture.head_dim
    found = dict(tensors)
    for number in range(architecture.num_layers):
        for kind in ("weight", "bias"):
            if fused := found.pop(f"blk.{number}.attn_qkv.{kind}", None):
                names = [f"blk.{number}.{part}.{kind}" for part in ("attn_q", "attn_k", "attn_v")]
                _split(file, fused, names, (query, key, key), found)
        up = found.get(f"blk.{number}.ffn_up.weight")
        if up is not None and f"blk.{number}.ffn_gate.weight" not in found and up.shape[0] != architecture.ffn_size:
            del found[up.name]
            names = [f"blk.{number}.{part}.weight" for part in ("ffn_gate", "ffn_up")]
            _split(file, up, names, (architecture.ffn_size, architecture.ffn_size), found)
    return found


def _split(file: str, fused: Tensor, names: Sequence[str], rows: Sequence[int], into: dict[str, Tensor]) -> None:
    if fused.shape[0] != sum(rows):
        raise ModelFileError(f"{file}: the tensor {fused.name!r} has {fused.shape[0]} rows, expected {' + '.join(map(str, rows))}")
    if len(fused.shape) == 1 and fused.type_name != "F32":
        raise ModelFileError(f"{file}: the tensor {fused.name!r} has the type {fused.type_name}; supported here: F32")
    row_bytes = len(fused.data) // fused.shape[0]  # blocks never cross a row
    at = 0
    for name, count in zip(names, rows, strict=True):
        if name in into:
            raise ModelFileError(f"{file}: the tensors {fused.name!r} and {name!r} hold the same weights")
        into[name] = Tensor(name, fused.type_name, (count, *fused.shape[1:]), fused.data[at * row_bytes : (at + count) * row_bytes])
        at += count
    assert at * row_bytes == len(fused.data) and math.prod(fused.shape) > 0
