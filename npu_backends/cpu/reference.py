"""Every architecture in NumPy float32: what serves without a compiler, and what the native kernels are checked against.

Every row is computed alone, as matrix times vector: the rows of a matrix product differ in their last bits from the same rows computed
one by one, so only this keeps cold = warm = chunked = batched to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...quant.formats import dequantize
from ...shared_protocol.architecture import Architecture
from ...shared_protocol.errors import EngineFailed
from ...shared_protocol.model import Model
from ...shared_protocol.runtime import MemoryReport
from ..step import StepBatch, StepExecutor
from ..validate import check_batch, check_hidden
from .blas import one_blas_thread
from .elementwise import ACTIVATIONS, Floats, attend, rotate, soft_cap
from .process import peak_bytes
from .rotary import RotaryTable, rotary_tables

KvType = Literal["f16", "f32"]
Cache = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class _Layer:
    """Weights as float32 [outputs, inputs]; vectors [outputs]. q, k, v and gate, up stand below one another."""

    attention_norm: Floats
    qkv: Floats
    qkv_bias: Floats | None
    query_norm: Floats | None  # [head_dim]
    key_norm: Floats | None
    output: Floats
    post_attention_norm: Floats | None
    ffn_norm: Floats
    gate_up: Floats
    down: Floats
    post_ffn_norm: Floats | None
    rotary: RotaryTable
    window: int  # positions that a query sees; 0: all


def reference_kernel_id(emulate_int8: bool = False, kv_type: KvType = "f16") -> str:
    kind = ("int8" if emulate_int8 else "f32") + ("" if kv_type == "f16" else f"-kv-{kv_type}")
    return f"numpy-{np.__version__}-{kind}-2"


KV_DTYPES: Mapping[KvType, np.dtype[np.floating]] = MappingProxyType({"f16": np.dtype(np.float16), "f32": np.dtype(np.float32)})


class ReferenceExecutor(StepExecutor):
    """A model in NumPy. `threads` is accepted for symmetry and has no effect.

    `emulate_int8` rounds the inputs of every matrix to int8 per group of 32, as the native kernels do: what then still differs is the
    order of float32 sums, so the two can be held to 1e-3 of each other. `kv_type` "f32" keeps K and V unrounded, to be held to 1e-3 of
    a forward pass that knows no cache.
    """

    def __init__(
        self,
        model: Model,
        *,
        num_blocks: int,
        block_size: int = 16,
        threads: int | None = None,
        emulate_int8: bool = False,
        kv_type: KvType = "f16",
    ) -> None:
        arch = model.architecture.for_context(num_blocks * block_size)
        self.kernel_id = reference_kernel_id(emulate_int8, kv_type)
        self.vocab_size, self.hidden_size, self.block_size, self.num_blocks = arch.vocab_size, arch.hidden_size, block_size, num_blocks
        self.architecture = arch
        self._multiply = _multiply_rounded if emulate_int8 else _multiply
        weights = {name: dequantize(tensor) for name, tensor in model.tensors.items()}
        self._embedding = weights["token_embd.weight"]
        self._head = self._embedding if arch.tied_embeddings else weights["output.weight"]
        self._final_norm = weights["output_norm.weight"]
        tables = rotary_tables(arch)
        self._tables = list(tables.values())
        self._layers = [_layer(arch, number, weights, tables[arch.layer_rotary(number)]) for number in range(arch.num_layers)]
        # [K and V, layers, slots, KV heads, head_dim]
        shape = (2, arch.num_layers, num_blocks * block_size, arch.num_kv_heads, arch.head_dim)
        try:
            self._cache: Cache | None = np.zeros(shape, KV_DTYPES[kv_type])
        except MemoryError:
            raise EngineFailed(f"too little memory for {num_blocks} blocks") from None

    def step(self, batch: StepBatch, hidden: Floats | None = None) -> Floats:
        if self._cache is None:
            raise EngineFailed("this executor is closed")
        check_batch(
            batch,
            vocab_size=self.vocab_size,
            num_blocks=self.num_blocks,
            block_size=self.block_size,
            max_positions=self.architecture.context_length,
        )
        check_hidden(hidden, len(batch.logit_rows), self.hidden_size)
        # hostile weights may overflow; the sampler refuses what is not finite
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._run(batch, self._cache, hidden)

    def _run(self, batch: StepBatch, cache: Cache, out: Floats | None) -> Floats:
        arch, multiply = self.architecture, self._multiply
        for table in self._tables:
            table.fill(int(batch.positions.max()) + 1)
        slots = self._slots(batch)
        scale = np.array(arch.embedding_scale, np.float32)
        hidden: list[Floats] = [self._embedding[token] * scale for token in batch.token_ids]
        for number, layer in enumerate(self._layers):
            queries = []
            for row, position in enumerate(batch.positions):
                query, key, value = self._project(layer, hidden[row], int(position))
                queries.append(query)
                cache[0, number, slots[row][-1]] = key
                cache[1, number, slots[row][-1]] = value
            for row, query in enumerate(queries):
                keys, values = cache[:, number, slots[row][-layer.window :]].astype(np.float32)
                attended = multiply(layer.output, attend(query, keys, values, arch.attention_scale, arch.attention_softcap))
                hidden[row] = hidden[row] + self._normalise(attended, layer.post_attention_norm)
                gate, up = np.split(multiply(layer.gate_up, self._normalise(hidden[row], layer.ffn_norm)), 2)
                fed_forward = multiply(layer.down, ACTIVATIONS[arch.activation](gate) * up)
                hidden[row] = hidden[row] + self._normalise(fed_forward, layer.post_ffn_norm)
        logits = np.empty((len(batch.logit_rows), self.vocab_size), np.float32)
        for index, row in enumerate(batch.logit_rows):
            last = self._normalise(hidden[row], self._final_norm)
            logits[index] = soft_cap(multiply(self._head, last), arch.logit_softcap)
            if out is not None:
                out[index] = last
        return logits

    def _slots(self, batch: StepBatch) -> list[NDArray[np.int64]]:
        """Per row: the cache slots of positions 0 .. its own."""
        slots = []
        for sequence, table in enumerate(batch.block_tables):
            whole = (table[:, None].astype(np.int64) * self.block_size + np.arange(self.block_size)).reshape(-1)
            slots += [whole[: batch.positions[row] + 1] for row in range(batch.query_start[sequence], batch.query_start[sequence + 1])]
        return slots

    def _project(self, layer: _Layer, hidden: Floats, position: int) -> tuple[Floats, Floats, Floats]:
        """One row's rotated query [heads, head_dim], rotated key and value [KV heads, head_dim]."""
        heads, kv_heads = self.architecture.num_heads, self.architecture.num_kv_heads
        flat = self._multiply(layer.qkv, self._normalise(hidden, layer.attention_norm))
        if layer.qkv_bias is not None:
            flat = flat + layer.qkv_bias
        query, key, value = np.split(flat.reshape(-1, self.architecture.head_dim), [heads, heads + kv_heads])
        query, key = self._normalise(query, layer.query_norm), self._normalise(key, layer.key_norm)
        cos_sin, interleaved = layer.rotary.at(position), layer.rotary.rotary.interleaved
        return rotate(query, cos_sin, interleaved), rotate(key, cos_sin, interleaved), value

    def _normalise(self, x: Floats, weight: Floats | None) -> Floats:
        """RMS norm over the last axis; without a weight there is no norm."""
        if weight is None:
            return x
        mean_square: Floats = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
        result: Floats = x * (np.float32(1) / np.sqrt(mean_square + np.float32(self.architecture.norm_eps))) * weight
        return result

    def memory(self) -> MemoryReport:
        arrays = [self._embedding, self._final_norm, self._head]
        arrays += [part for layer in self._layers for name in _Layer.__slots__ if isinstance(part := getattr(layer, name), np.ndarray)]
        weights = sum({id(array): array.nbytes for array in arrays}.values())  # the head may be the embedding
        weights += sum(table.nbytes for table in self._tables)
        kv = 0 if self._cache is None else self._cache.nbytes
        return MemoryReport(weights=weights, kv=kv, scratch=0, peak=peak_bytes())

    def close(self) -> None:
        self._cache = None
        self._layers.clear()


def _layer(arch: Architecture, number: int, weights: dict[str, Floats], table: RotaryTable) -> _Layer:
    """Take one layer's weights out of `weights`."""
    prefix = f"blk.{number}."
    parts = {name.removeprefix(prefix): weights.pop(name) for name in list(weights) if name.startswith(prefix)}
    return _Layer(
        attention_norm=parts["attn_norm.weight"],
        qkv=np.concatenate([parts[f"attn_{part}.weight"] for part in "qkv"]),
        qkv_bias=np.concatenate([parts[f"attn_{part}.bias"] for part in "qkv"]) if arch.qkv_bias else None,
        query_norm=parts.get("attn_q_norm.weight"),
        key_norm=parts.get("attn_k_norm.weight"),
        output=parts["attn_output.weight"],
        post_attention_norm=parts.get("post_attention_norm.weight"),
        ffn_norm=parts["ffn_norm.weight"],
        gate_up=np.concatenate([parts["ffn_gate.weight"], parts["ffn_up.weight"]]),
        down=parts["ffn_down.weight"],
        post_ffn_norm=parts.get("post_ffw_norm.weight"),
        rotary=table,
        window=arch.window(number),
    )


def _multiply(weights: Floats, inputs: Floats) -> Floats:
    """[outputs, inputs] times [inputs]."""
    result: Floats = weights @ inputs
    return result


def _multiply_rounded(weights: Floats, inputs: Floats) -> Floats:
    return _multiply(weights, round_to_int8(inputs))


def round_to_int8(x: Floats) -> Floats:
    """Round to int8 per group of 32, halves to even, and back: what the native kernels multiply with."""
    groups = x.reshape(-1, 32)
    peak = np.abs(groups).max(axis=1, keepdims=True)
    empty = peak <= np.float32(1e-30)
    scale = np.where(empty, np.float32(0), peak / np.float32(127))
    inverse = np.divide(np.float32(127), peak, out=np.zeros_like(peak), where=~empty)
    rounded: Floats = np.rint(groups * inverse) * scale
    return rounded.reshape(x.shape)
