"""The kernels once more in NumPy: every float32 operation in the same order, none shared with the C++ code.

Slow and plain. It gives the logits to the bit, so it checks what a tolerance cannot: which sums are taken in which order. The instruction
sets differ in one thing only: whether multiply-add rounds once or twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hybrid.quant.formats import dequantize
from hybrid.shared_protocol.architecture import Rotary
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.matrix_twin import MultiplyAdd, product

f32 = np.float32
TILE = 16  # keys


def twice_rounded(a: Any, b: Any, c: Any) -> Any:
    """a * b + c as the scalar kernels take it."""
    return a * b + c


def once_rounded(a: Any, b: Any, c: Any) -> Any:
    """a * b + c as a fused instruction takes it: the product is exact in float64 (the sum is rounded there first, which shows in one
    of 2^29 cases)."""
    return (np.multiply(a, b, dtype=np.float64) + c).astype(f32)


class KernelTwin:
    """One model; `logits_of` computes each position as the kernels would."""

    def __init__(self, model: Model, multiply_add: MultiplyAdd) -> None:
        self.arch = model.architecture
        self.tensors = model.tensors
        self.multiply_add = multiply_add

    def logits_of(self, ids: Sequence[int]) -> np.ndarray:
        """Logits of every position of one sequence, float32 [tokens, vocabulary]."""
        arch = self.arch
        keys = np.zeros((arch.num_layers, len(ids), arch.num_kv_heads, arch.head_dim), np.float16)
        values = np.zeros_like(keys)
        head = "token_embd.weight" if arch.tied_embeddings else "output.weight"
        rows = []
        for position, token in enumerate(ids):
            hidden = _embedding(self.tensors["token_embd.weight"], token) * f32(arch.embedding_scale)
            for number in range(arch.num_layers):
                hidden = self._layer(number, hidden, position, keys[number, : position + 1], values[number, : position + 1])
            logits = self._multiply(head, self._norm("output_norm.weight", hidden))
            rows.append(self._capped(logits, arch.logit_softcap) if arch.logit_softcap else logits)
        return np.array(rows)

    def _layer(self, number: int, hidden: np.ndarray, position: int, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        arch, layer = self.arch, f"blk.{number}."
        normed = self._norm(f"{layer}attn_norm.weight", hidden)
        query, keys[-1] = (self._rotated_heads(number, part, normed, position) for part in ("attn_q", "attn_k"))
        values[-1] = self._biased(f"{layer}attn_v", normed).reshape(-1, arch.head_dim)
        shared = arch.num_heads // arch.num_kv_heads
        attended = [self._attend(query[head], keys[:, head // shared], values[:, head // shared]) for head in range(arch.num_heads)]
        hidden = hidden + self._post_normed(
            f"{layer}post_attention_norm", self._multiply(f"{layer}attn_output.weight", np.concatenate(attended))
        )
        normed = self._norm(f"{layer}ffn_norm.weight", hidden)
        gate = self._activated(self._multiply(f"{layer}ffn_gate.weight", normed))
        return hidden + self._post_normed(
            f"{layer}post_ffw_norm", self._multiply(f"{layer}ffn_down.weight", gate * self._multiply(f"{layer}ffn_up.weight", normed))
        )

    def _rotated_heads(self, number: int, part: str, normed: np.ndarray, position: int) -> np.ndarray:
        """Queries or keys of one position, [heads, head_dim]."""
        heads = self._biased(f"blk.{number}.{part}", normed).reshape(-1, self.arch.head_dim)
        if self.arch.qk_norm:
            heads = np.array([self._norm(f"blk.{number}.{part}_norm.weight", head) for head in heads])
        return _rotate(heads, position, self.arch.layer_rotary(number))

    def _biased(self, part: str, x: np.ndarray) -> np.ndarray:
        product = self._multiply(f"{part}.weight", x)
        return product + self.tensors[f"{part}.bias"].data.view(f32) if self.arch.qkv_bias else product

    def _post_normed(self, part: str, x: np.ndarray) -> np.ndarray:
        return self._norm(f"{part}.weight", x) if self.arch.post_norms else x

    def _activated(self, x: np.ndarray) -> np.ndarray:
        inner = f32(0) - x
        if self.arch.activation == "gelu_tanh":  # x / (1 + e^(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
            inner = x * self.multiply_add(x * x, f32(-2 * 0.044715 * (2 / np.pi) ** 0.5), f32(-2 * (2 / np.pi) ** 0.5))
        return x / (f32(1) + exponential(inner, self.multiply_add))

    def _capped(self, x: np.ndarray, cap: float) -> np.ndarray:
        y = np.clip(x / f32(cap), f32(-43), f32(43))
        tanh = f32(1) - f32(2) / (exponential(y + y, self.multiply_add) + f32(1))
        return f32(cap) * tanh

    def _multiply(self, name: str, x: np.ndarray) -> np.ndarray:
        return product(self.tensors[name], x, self.multiply_add)

    def _norm(self, name: str, x: np.ndarray) -> np.ndarray:
        lanes = np.zeros(8, f32)
        for eight in x.reshape(-1, 8):
            lanes = self.multiply_add(eight, eight, lanes)
        factor = f32(1) / np.sqrt(_sum8(lanes) / f32(len(x)) + f32(self.arch.norm_eps))
        return x * factor * self.tensors[name].data.view(f32)

    def _attend(self, query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        dim = len(query)
        scale = f32(self.arch.attention_scale)
        out, total, peak = np.zeros(dim, f32), f32(0), f32(-np.inf)
        for start in range(0, len(keys), TILE):
            tile = keys[start : start + TILE].astype(f32)
            scores = np.zeros(len(tile), f32)
            for i in range(dim):
                scores = self.multiply_add(query[i], tile[:, i], scores)
            scores = np.concatenate([scores * scale, np.full(TILE - len(tile), -np.inf, f32)])
            above = max(peak, scores.max())
            weights = exponential(scores - above, self.multiply_add)
            shrink = exponential(np.array([peak - above], f32), self.multiply_add)[0]
            peak = above
            total = total * shrink + _sum8(weights[:8] + weights[8:])
            out = out * shrink
            for weight, value in zip(weights, values[start : start + TILE].astype(f32), strict=False):
                out = self.multiply_add(weight, value, out)
        return out / total


def exponential(x: np.ndarray, multiply_add: MultiplyAdd = twice_rounded) -> np.ndarray:
    bounded = np.minimum(np.maximum(x, f32(-87)), f32(88))
    n = np.rint(bounded * f32(1.44269504))
    r = multiply_add(n, f32(-0.693145751953125), bounded)
    r = multiply_add(n, f32(-1.42860677e-06), r)
    p = np.full_like(x, 1 / 5040)
    for c in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 0.5, 1.0, 1.0):
        p = multiply_add(p, r, f32(c))
    return np.where(x >= f32(-87), np.ldexp(p, n.astype(np.int32)), f32(0)).astype(f32)


def _embedding(tensor: Tensor, token: int) -> np.ndarray:
    row = tensor.data.reshape(tensor.shape[0], -1)[token]
    return dequantize(Tensor(tensor.name, tensor.type_name, (1, tensor.shape[1]), row))[0]


def _sum8(lanes: np.ndarray) -> np.float32:
    a = lanes[:4] + lanes[4:]
    return (a[0] + a[2]) + (a[1] + a[3])


def _rotate(heads: np.ndarray, position: int, rotary: Rotary) -> np.ndarray:
    angle = position * np.array(rotary.frequencies)
    cosine, sine = (rotary.magnitude * np.cos(angle)).astype(f32), (rotary.magnitude * np.sin(angle)).astype(f32)
    pairs, out = len(angle), heads.copy()
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if rotary.interleaved else (slice(pairs), slice(pairs, 2 * pairs))
    out[:, first] = heads[:, first] * cosine - heads[:, second] * sine
    out[:, second] = heads[:, second] * cosine + heads[:, first] * sine
    return out
