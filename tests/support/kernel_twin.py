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
TILE, PART = 32, 256  # keys that are exponentiated together, and that have a softmax of their own


def twice_rounded(a: Any, b: Any, c: Any) -> Any:
    """a * b + c as the scalar kernels take it."""
    return a * b + c


def once_rounded(a: Any, b: Any, c: Any) -> Any:
    """a * b + c as a fused instruction takes it: the product is exact in float64 (the sum is rounded there first, which shows in one
    of 2^29 cases)."""
    return (np.multiply(a, b, dtype=np.float64) + c).astype(f32)


ROUNDING = {"scalar": twice_rounded, "avx2": once_rounded, "avx512": once_rounded, "neon": once_rounded}


class KernelTwin:
    """One model; `run` computes each position as the kernels would."""

    def __init__(self, model: Model, multiply_add: MultiplyAdd) -> None:
        self.arch = model.architecture
        self.tensors = model.tensors
        self.multiply_add = multiply_add

    def logits_of(self, ids: Sequence[int], first: int = 0) -> np.ndarray:
        return self.run(ids, first)[0]

    def run(self, ids: Sequence[int], first: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Logits and hidden states of the positions of one sequence from `first` on, float32 [tokens, vocabulary] and [tokens, hidden]."""
        arch = self.arch
        keys = np.zeros((arch.num_layers, len(ids), arch.num_kv_heads, arch.head_dim), np.float16)
        values = np.zeros_like(keys)
        head = "token_embd.weight" if arch.tied_embeddings else "output.weight"
        rows, states = [], []
        for position, token in enumerate(ids):
            hidden = _embedding(self.tensors["token_embd.weight"], token) * f32(arch.embedding_scale)
            for number in range(arch.num_layers):
                seen = keys[number, : position + 1], values[number, : position + 1]
                normed = self._norm(f"blk.{number}.attn_norm.weight", hidden)
                self._store(number, normed, position, *seen)
                if position < first and number == arch.num_layers - 1:  # nothing reads more of it
                    break
                hidden = self._layer(number, hidden, normed, position, *seen)
            else:
                states.append(self._norm("output_norm.weight", hidden))
                logits = self._multiply(head, states[-1])
                rows.append(self._capped(logits, arch.logit_softcap) if arch.logit_softcap else logits)
        return np.array(rows), np.array(states)

    def _store(self, number: int, normed: np.ndarray, position: int, keys: np.ndarray, values: np.ndarray) -> None:
        keys[-1] = self._rotated_heads(number, "attn_k", normed, position)
        values[-1] = self._biased(f"blk.{number}.attn_v", normed).reshape(-1, self.arch.head_dim)

    def _layer(
        self, number: int, hidden: np.ndarray, normed: np.ndarray, position: int, keys: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        arch, layer = self.arch, f"blk.{number}."
        query = self._rotated_heads(number, "attn_q", normed, position)
        shared = arch.num_heads // arch.num_kv_heads
        window = arch.window(number)
        attended = [self._attend(query[head], keys[:, head // shared], values[:, head // shared], window) for head in range(arch.num_heads)]
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

    def _attend(self, query: np.ndarray, keys: np.ndarray, values: np.ndarray, window: int) -> np.ndarray:
        """One head: a softmax per part of the keys, merged in ascending order."""
        first, out, total, peak = max(0, len(keys) - window) if window else 0, None, f32(0), f32(0)
        for start in range(first // PART * PART, len(keys), PART):
            part, part_total, part_peak = self._attend_part(query, keys, values, max(first, start), min(len(keys), start + PART))
            if out is None:
                out, total, peak = part, part_total, part_peak
                continue
            above = max(peak, part_peak)
            keep, take = exponential(np.array([peak - above, part_peak - above], f32), self.multiply_add)
            out, total, peak = out * keep + part * take, total * keep + part_total * take, above
        assert out is not None
        return out / total

    def _attend_part(
        self, query: np.ndarray, keys: np.ndarray, values: np.ndarray, first: int, end: int
    ) -> tuple[np.ndarray, np.float32, np.float32]:
        """Output and total before the division, and the highest score, over the keys first .. end - 1."""
        dim, scale = len(query), f32(self.arch.attention_scale)
        out, total, peak = np.zeros(dim, f32), f32(0), f32(-np.inf)
        products = np.zeros(end - first, f32)
        for i in range(dim):
            products = self.multiply_add(query[i], keys[first:end, i].astype(f32), products)
        products = products * scale
        if self.arch.attention_softcap:
            products = self._capped(products, self.arch.attention_softcap)
        for start in range(first // TILE * TILE, end, TILE):
            low, high = max(first, start), min(end, start + TILE)
            scores = np.full(TILE, -np.inf, f32)
            scores[low - start : high - start] = products[low - first : high - first]
            above = max(peak, scores.max())
            shrink = exponential(np.array([peak - above], f32), self.multiply_add)[0]
            weights = exponential(scores - above, self.multiply_add)
            peak = above
            halves = weights[: TILE // 2] + weights[TILE // 2 :]
            total = total * shrink + _sum8(halves[:8] + halves[8:])
            out = out * shrink
            for key in range(low, high):
                out = self.multiply_add(weights[key - start], values[key].astype(f32), out)
        return out, total, peak


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
