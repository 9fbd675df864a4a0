"""What kind of network a GGUF file holds, and whether its tensors are the ones that such a network needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from .errors import ModelFileError
from .gguf import GgufFile, Tensor

T = TypeVar("T")

FAMILIES = ("llama",)
# fmt: off
WEIGHT_TYPES = (  # of matrices; vectors are F32
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "F16", "BF16", "F32",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Rotary:
    """How a position turns the pairs of a head: pair i by position * frequencies[i]. Every kind of scaling ends as frequencies.

    interleaved      x0 x1 | x2 x3 | ...            pair i is (2i, 2i + 1)
    else, n pairs    x0 ... x(n-1) | xn ... x(2n-1)  pair i is (i, n + i)
    """

    frequencies: tuple[float, ...]  # radians per position; fewer than head_dim / 2 leave the head's end as it is
    interleaved: bool
    magnitude: float = 1.0  # multiplies cosine and sine


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a decoder-only transformer computes. Head h of the query reads key head h // (num_heads // num_kv_heads)."""

    family: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn_size: int
    vocab_size: int
    context_length: int  # tokens
    norm_eps: float
    rotary: Rotary
    tied_embeddings: bool  # the output matrix is the embedding
    attention_scale: float  # multiplies the scores; 1 / sqrt(head_dim) but for a few
    windows: tuple[int, ...] = ()  # per layer: a query sees this many positions, its own included; 0, or no entry: all
    local_rotary: Rotary | None = None  # of the layers that have a window; None: the same as the others'
    activation: Literal["silu", "gelu_tanh"] = "silu"  # of the gate
    qkv_bias: bool = False
    qk_norm: bool = False  # RMS norm of each query and key head, before it is rotated
    post_norms: bool = False  # attention's and the feed-forward's outputs are normed before they are added
    embedding_scale: float = 1.0
    attention_softcap: float = 0.0  # scores become cap * tanh(score / cap); 0: none
    logit_softcap: float = 0.0

    def window(self, layer: int) -> int:
        """Positions that a query of `layer` sees, its own included; 0 for all."""
        return self.windows[layer] if self.windows else 0

    def layer_rotary(self, layer: int) -> Rotary:
        return self.local_rotary if self.local_rotary is not None and self.window(layer) else self.rotary


def plain_frequencies(dims: int, base: float) -> tuple[float, ...]:
    """base^(-2i / dims) for the pairs i of `dims` inputs. Source: Su et al. 2021."""
    return tuple(base ** (-2 * i / dims) for i in range(dims // 2))


def architecture_of(gguf: GgufFile) -> Architecture:
    """Read and check sizes and tensors. Raises ModelFileError naming the key or tensor at fault, and what is supported."""
    meta = _Metadata(gguf)
    family = meta.get("general.architecture", str)
    if family not in FAMILIES:
        raise ModelFileError(f"{gguf.path.name}: the architecture {family[:40]!r} is not supported; supported: {', '.join(FAMILIES)}")
    heads = meta.integer(f"{family}.attention.head_count", 1, 1024)
    hidden = meta.integer(f"{family}.embedding_length", 1, 1 << 17)
    kv_heads = meta.integer(f"{family}.attention.head_count_kv", 1, heads, default=heads)
    meta.require(heads % kv_heads == 0, f"{family}.attention.head_count_kv", f"{kv_heads} does not divide the {heads} heads")
    if f"{family}.attention.key_length" not in gguf.metadata:
        meta.require(hidden % heads == 0, f"{family}.embedding_length", f"{hidden} is no multiple of the {heads} heads")
    head_dim = meta.integer(f"{family}.attention.key_length", 2, 1024, default=hidden // heads)
    meta.same(f"{family}.attention.value_length", head_dim)
    meta.same(f"{family}.rope.dimension_count", head_dim)
    meta.require(head_dim % 2 == 0, f"{family}.attention.key_length", f"heads of {head_dim} have no rotary pairs")
    meta.same(f"{family}.expert_count", 0)
    scaling = gguf.metadata.get(f"{family}.rope.scaling.type", "none")
    meta.require(scaling == "none", f"{family}.rope.scaling.type", f"{scaling!r:.40} is not supported, only 'none' is")
    embedding = gguf.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise ModelFileError(f"{gguf.path.name}: the tensor 'token_embd.weight' is missing or no matrix")
    meta.same(f"{family}.vocab_size", embedding.shape[0])
    architecture = Architecture(
        family=family,
        num_layers=meta.integer(f"{family}.block_count", 1, 1024),
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        ffn_size=meta.integer(f"{family}.feed_forward_length", 1, 1 << 20),
        vocab_size=embedding.shape[0],
        context_length=meta.integer(f"{family}.context_length", 1, 1 << 24),
        norm_eps=meta.number(f"{family}.attention.layer_norm_rms_epsilon", 1e-12, 0.1),
        rotary=Rotary(plain_frequencies(head_dim, meta.number(f"{family}.rope.freq_base", 1.0, 1e12, default=10_000.0)), interleaved=True),
        attention_scale=1 / math.sqrt(head_dim),
        tied_embeddings="output.weight" not in gguf.tensors,
    )
    _check_tensors(gguf.path.name, gguf.tensors, expected_shapes(architecture))
    return architecture


def expected_shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """Name and shape (rows, columns) of every tensor that the network has, no more and no less."""
    hidden, ffn, vocab = architecture.hidden_size, architecture.ffn_size, architecture.vocab_size
    query, key = architecture.num_heads * architecture.head_dim, architecture.num_kv_heads * architecture.head_dim
    layer = {
        "attn_norm": (hidden,),
        "attn_q": (query, hidden),
        "attn_k": (key, hidden),
        "attn_v": (key, hidden),
        "attn_output": (hidden, query),
        "ffn_norm": (hidden,),
        "ffn_gate": (ffn, hidden),
        "ffn_up": (ffn, hidden),
        "ffn_down": (hidden, ffn),
    }
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocab, hidden), "output_norm.weight": (hidden,)}
    if not architecture.tied_embeddings:
        shapes["output.weight"] = (vocab, hidden)
    for number in range(architecture.num_layers):
        shapes |= {f"blk.{number}.{part}.weight": shape for part, shape in layer.items()}
    return shapes


def _check_tensors(file: str, tensors: Mapping[str, Tensor], expected: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in expected.items():
        tensor = tensors.get(name)
        if tensor is None:
            raise ModelFileError(f"{file}: the tensor {name!r} is missing")
        if tensor.shape != shape:
            raise ModelFileError(f"{file}: the tensor {name!r} has the shape {tensor.shape}, expected {shape}")
        supported = WEIGHT_TYPES if len(shape) == 2 else ("F32",)
        if tensor.type_name not in supported:
            raise ModelFileError(f"{file}: the tensor {name!r} has the type {tensor.type_name}; supported here: {', '.join(supported)}")
    for name in tensors:
        if name not in expected:  # a bias or a rotary factor that we would ignore changes every answer
            raise ModelFileError(f"{file}: the tensor {name!r} is not part of this architecture as it is supported")


class _Metadata:
    """Typed look-ups in a file's metadata."""

    def __init__(self, gguf: GgufFile) -> None:
        self.file = gguf.path.name
        self.values = gguf.metadata

    def get(self, key: str, kind: type[T]) -> T:
        value = self.values.get(key)
        self.require(value is not None, key, "is missing")
        right = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        self.require(right, key, f"must be {kind.__name__}, found {type(value).__name__}")
        assert isinstance(value, kind)
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = default if default is not None and key not in self.values else self.get(key, int)
        self.require(low <= value <= high, key, f"must lie between {low} and {high}, found {value}")
        return value

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        value = default if default is not None and key not in self.values else self.get(key, float)
        self.require(math.isfinite(value) and low <= value <= high, key, f"must lie between {low} and {high}, found {value}")
        return value

    def same(self, key: str, expected: int) -> None:
        """Require that `key`, when it is there, says what the rest of the file implies."""
        if key in self.values:
            self.require(
                self.values[key] == expected, key, f"is {self.values[key]!r:.40}, only {expected} is supported with this file's sizes"
            )

    def require(self, holds: bool, key: str, problem: str) -> None:
        if not holds:
            raise ModelFileError(f"{self.file}: the key {key!r} {problem}")
