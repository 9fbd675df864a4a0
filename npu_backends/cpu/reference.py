"""The Llama architecture in NumPy float32: what serves without a compiler, and what the native kernels are checked against.

Every row is computed alone, as matrix times vector: the rows of a matrix product differ in their last bits from the same rows computed
one by one, so only this keeps cold = warm = chunked = batched to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...quant.formats import dequantize
from ...shared_protocol.errors import ConfigError, EngineFailed
from ...shared_protocol.model import Model
from ...shared_protocol.runtime import MemoryReport
from ..step import StepBatch, StepExecutor
from ..validate import check_batch
from .blas import one_blas_thread
from .process import peak_bytes
from .rotary import rotary_table

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights as float32 [outputs, inputs]; norms [hidden]. q, k, v and gate, up stand below one another."""

    attention_norm: Floats
    qkv: Floats
    output: Floats
    ffn_norm: Floats
    gate_up: Floats
    down: Floats


def reference_kernel_id(emulate_int8: bool = False) -> str:
    return f"numpy-{np.__version__}-{'int8' if emulate_int8 else 'f32'}-1"


class ReferenceExecutor(StepExecutor):
    """A model in NumPy. `threads` is accepted for symmetry and has no effect.

    `emulate_int8` rounds the inputs of every matrix to int8 per group of 32, as the native kernels do: what then still differs is the
    order of float32 sums, so the two can be held to 1e-3 of each other.
    """

    def __init__(
        self, model: Model, *, num_blocks: int, block_size: int = 16, threads: int | None = None, emulate_int8: bool = False
    ) -> None:
        arch = model.architecture
        if not arch.rotary.interleaved:
            raise ConfigError("the CPU executors need interleaved rotary pairs")
        self.kernel_id = reference_kernel_id(emulate_int8)
        self.vocab_size, self.block_size, self.num_blocks = arch.vocab_size, block_size, num_blocks
        self._arch = arch
        self._emulate_int8 = emulate_int8
        self._max_positions = min(arch.context_length, num_blocks * block_size)
        self._rotary = rotary_table(self._max_positions, arch.rotary)
        weights = {name: dequantize(tensor) for name, tensor in model.tensors.items()}
        self._embedding = weights["token_embd.weight"]
        self._head = self._embedding if arch.tied_embeddings else weights["output.weight"]
        self._final_norm = weights["output_norm.weight"]
        self._layers = []
        for number in range(arch.num_layers):
            parts = {name.split(".")[2]: weights.pop(name) for name in list(weights) if name.startswith(f"blk.{number}.")}
            self._layers.append(
                _Layer(
                    parts["attn_norm"],
                    np.concatenate([parts[name] for name in ("attn_q", "attn_k", "attn_v")]),
                    parts["attn_output"],
                    parts["ffn_norm"],
                    np.concatenate([parts["ffn_gate"], parts["ffn_up"]]),
                    parts["ffn_down"],
                )
            )
        # [K and V, layers, slots, KV heads, head_dim]
        shape = (2, arch.num_layers, num_blocks * block_size, arch.num_kv_heads, arch.head_dim)
        self._cache: NDArray[np.float16] | None = np.zeros(shape, np.float16)

    def step(self, batch: StepBatch) -> Floats:
        if self._cache is None:
            raise EngineFailed("this executor is closed")
        check_batch(
            batch,
            vocab_size=self.vocab_size,
            num_blocks=self.num_blocks,
            block_size=self.block_size,
            max_positions=self._max_positions,
        )
        # hostile weights may overflow; the sampler refuses what is not finite
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._run(batch, self._cache)

    def _run(self, batch: StepBatch, cache: NDArray[np.float16]) -> Floats:
        slots = self._slots(batch)
        hidden = [self._embedding[token].copy() for token in batch.token_ids]
        for number, layer in enumerate(self._layers):
            queries = [self._project(layer, number, row, hidden[row], batch, slots, cache) for row in range(len(hidden))]
            for row, query in enumerate(queries):
                keys, values = cache[:, number, slots[row]].astype(np.float32)
                hidden[row] += self._multiply(layer.output, self._attend(query, keys, values))
                gate, up = np.split(self._multiply(layer.gate_up, self._normalise(hidden[row], layer.ffn_norm)), 2)
                hidden[row] += self._multiply(layer.down, gate / (1 + np.exp(-gate)) * up)
        logits = np.empty((len(batch.logit_rows), self.vocab_size), np.float32)
        for index, row in enumerate(batch.logit_rows):
            logits[index] = self._multiply(self._head, self._normalise(hidden[row], self._final_norm))
        return logits

    def _slots(self, batch: StepBatch) -> list[NDArray[np.int64]]:
        """Per row: the cache slots of positions 0 .. its own."""
        slots = []
        for sequence, table in enumerate(batch.block_tables):
            whole = (table[:, None].astype(np.int64) * self.block_size + np.arange(self.block_size)).reshape(-1)
            slots += [whole[: batch.positions[row] + 1] for row in range(batch.query_start[sequence], batch.query_start[sequence + 1])]
        return slots

    def _project(
        self,
        layer: _Layer,
        number: int,
        row: int,
        hidden: Floats,
        batch: StepBatch,
        slots: list[NDArray[np.int64]],
        cache: NDArray[np.float16],
    ) -> Floats:
        """Store K and V of one row; return its rotated query [heads, head_dim]."""
        heads, kv_heads = self._arch.num_heads, self._arch.num_kv_heads
        qkv = self._multiply(layer.qkv, self._normalise(hidden, layer.attention_norm)).reshape(-1, self._arch.head_dim)
        rotated = self._rotate(qkv[: heads + kv_heads], self._rotary[batch.positions[row]])
        cache[0, number, slots[row][-1]] = rotated[heads:]
        cache[1, number, slots[row][-1]] = qkv[heads + kv_heads :]
        return rotated[:heads]

    def _multiply(self, weights: Floats, inputs: Floats) -> Floats:
        """[outputs, inputs] times [inputs]."""
        result: Floats = weights @ (round_to_int8(inputs) if self._emulate_int8 else inputs)
        return result

    def _normalise(self, x: Floats, weight: Floats) -> Floats:
        mean_square = np.mean(x * x, dtype=np.float32)
        result: Floats = x * (np.float32(1) / np.sqrt(mean_square + np.float32(self._arch.norm_eps))) * weight
        return result

    def _rotate(self, heads: Floats, cos_sin: Floats) -> Floats:
        """Turn the pairs (2i, 2i + 1) of every head by the angles of one position."""
        first, second = heads[:, 0::2], heads[:, 1::2]
        cosine, sine = cos_sin[:, 0], cos_sin[:, 1]
        return np.stack([first * cosine - second * sine, second * cosine + first * sine], axis=-1).reshape(heads.shape)

    def _attend(self, query: Floats, keys: Floats, values: Floats) -> Floats:
        """query [heads, head_dim], keys and values [positions, KV heads, head_dim] -> [heads * head_dim]."""
        kv_heads, dim = keys.shape[1:]
        shared = query.reshape(kv_heads, -1, dim) * np.float32(self._arch.attention_scale)
        scores = shared @ np.ascontiguousarray(keys.transpose(1, 2, 0))  # [KV heads, shared, positions]
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        result: Floats = weights @ np.ascontiguousarray(values.transpose(1, 0, 2))
        return result.reshape(-1)

    def memory(self) -> MemoryReport:
        arrays = [self._embedding, self._final_norm]
        if self._head is not self._embedding:
            arrays.append(self._head)
        for layer in self._layers:
            arrays += [layer.attention_norm, layer.qkv, layer.output, layer.ffn_norm, layer.gate_up, layer.down]
        kv = 0 if self._cache is None else self._cache.nbytes
        return MemoryReport(weights=sum(array.nbytes for array in arrays), kv=kv, scratch=0, peak=peak_bytes())

    def close(self) -> None:
        self._cache = None
        self._layers.clear()


def round_to_int8(x: Floats) -> Floats:
    """Round to int8 per group of 32, halves to even, and back: what the native kernels multiply with."""
    groups = x.reshape(-1, 32)
    peak = np.abs(groups).max(axis=1, keepdims=True)
    empty = peak <= np.float32(1e-30)
    scale = np.where(empty, np.float32(0), peak / np.float32(127))
    inverse = np.divide(np.float32(127), peak, out=np.zeros_like(peak), where=~empty)
    rounded: Floats = np.rint(groups * inverse) * scale
    return rounded.reshape(x.shape)
