"""What a decoder-only transformer computes, whatever file it came from: the only description that executors read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal


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
    long_rotary: Rotary | None = None  # takes the place of `rotary` in a context of more than `original_context` tokens
    original_context: int = 0
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

    def for_context(self, tokens: int) -> Architecture:
        """The network as it is computed where no sequence grows beyond `tokens`: at most that context, with the frequencies for it.

        The frequencies are chosen once, at the first call, and hold for every position: a key that was rotated stays as it is when its
        sequence grows.
        """
        context = min(tokens, self.context_length)
        long = self.long_rotary if context > self.original_context else None
        return dataclasses.replace(self, context_length=context, rotary=long or self.rotary, long_rotary=None)
