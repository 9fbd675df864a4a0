"""The kernels once more in NumPy: every float32 operation in the same order, none shared with the C++ code.

Slow and plain. It gives the logits to the bit, so it checks what a tolerance cannot: which sums are taken in which order. The instruction
sets differ in one thing only: whether multiply-add rounds once or twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model

f32 = np.float32
TILE = 16  # keys
MultiplyAdd = Callable[[Any, Any, Any], Any]


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
        rows = []
        for position, token in enumerate(ids):
            hidden = _embedding(self.tensors["token_embd.weight"], token)
            for number in range(arch.num_layers):
                hidden = self._layer(f"blk.{number}.", hidden, position, keys[number, : position + 1], values[number, : position + 1])
            rows.append(self._multiply("token_embd.weight", self._norm("output_norm.weight", hidden)))
        return np.array(rows)

    def _layer(self, layer: str, hidden: np.ndarray, position: int, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        arch = self.arch
        normed = self._norm(f"{layer}attn_norm.weight", hidden)
        query = _rotate(self._multiply(f"{layer}attn_q.weight", normed), position, arch.head_dim, arch.rotary.frequencies)
        keys[-1] = _rotate(self._multiply(f"{layer}attn_k.weight", normed), position, arch.head_dim, arch.rotary.frequencies)
        values[-1] = self._multiply(f"{layer}attn_v.weight", normed).reshape(-1, arch.head_dim)
        shared = arch.num_heads // arch.num_kv_heads
        attended = [self._attend(query[head], keys[:, head // shared], values[:, head // shared]) for head in range(arch.num_heads)]
        hidden = hidden + self._multiply(f"{layer}attn_output.weight", np.concatenate(attended))
        normed = self._norm(f"{layer}ffn_norm.weight", hidden)
        gate = self._multiply(f"{layer}ffn_gate.weight", normed)
        silu = gate / (f32(1) + exponential(f32(0) - gate, self.multiply_add))
        return hidden + self._multiply(f"{layer}ffn_down.weight", silu * self._multiply(f"{layer}ffn_up.weight", normed))

    def _multiply(self, name: str, x: np.ndarray) -> np.ndarray:
        codes, d, m = _codes(self.tensors[name])
        total = np.zeros(len(codes), f32)
        for group, part in enumerate(x.reshape(-1, 32)):
            peak = np.abs(part).max()
            scale, inverse = (f32(0), f32(0)) if peak <= f32(1e-30) else (peak / f32(127), f32(127) / peak)
            rounded = np.rint(part * inverse)
            dots = codes[:, group] @ rounded  # whole numbers below 2^24: exact in any order
            total = self.multiply_add(d[:, group] * scale, dots, total)
            if m is not None:
                total = self.multiply_add(m[:, group], scale * rounded.sum(), total)
        return total

    def _norm(self, name: str, x: np.ndarray) -> np.ndarray:
        lanes = np.zeros(8, f32)
        for eight in x.reshape(-1, 8):
            lanes = self.multiply_add(eight, eight, lanes)
        factor = f32(1) / np.sqrt(_sum8(lanes) / f32(len(x)) + f32(self.arch.norm_eps))
        return x * factor * self.tensors[name].data.view(f32)

    def _attend(self, query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        dim = len(query)
        scale = f32(1) / np.sqrt(f32(dim))
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


def _codes(tensor: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Codes, whole numbers as float32 [rows, groups, 32], scales d and minima m [rows, groups] of a matrix."""
    rows, columns = tensor.shape
    if tensor.type_name == "Q8_0":
        blocks = tensor.data.reshape(rows, columns // 32, 34)
        return blocks[..., 2:].view(np.int8).astype(f32), _half(blocks, 0), None
    blocks = tensor.data.reshape(rows, columns // 32, 20)
    codes = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], axis=-1)
    return codes.astype(f32), _half(blocks, 0), _half(blocks, 2)


def _half(blocks: np.ndarray, at: int) -> np.ndarray:
    return np.ascontiguousarray(blocks[..., at : at + 2]).view(np.float16)[..., 0].astype(f32)


def _embedding(tensor: Tensor, token: int) -> np.ndarray:
    codes, d, m = _codes(Tensor(tensor.name, tensor.type_name, (1, tensor.shape[1]), tensor.data.reshape(tensor.shape[0], -1)[token]))
    return (codes[0] * d[0][:, None] + (0 if m is None else m[0][:, None])).astype(f32).reshape(-1)


def _sum8(lanes: np.ndarray) -> np.float32:
    a = lanes[:4] + lanes[4:]
    return (a[0] + a[2]) + (a[1] + a[3])


def _rotate(flat: np.ndarray, position: int, dim: int, frequencies: Sequence[float]) -> np.ndarray:
    heads = flat.reshape(-1, dim)
    angle = position * np.array(frequencies)
    cosine, sine = np.cos(angle).astype(f32), np.sin(angle).astype(f32)
    out = np.empty_like(heads)
    out[:, 0::2] = heads[:, 0::2] * cosine - heads[:, 1::2] * sine
    out[:, 1::2] = heads[:, 1::2] * cosine + heads[:, 0::2] * sine
    return out
