"""Sizes moved from rows to weights before both are rounded: a row has few columns many times larger than the rest, a matrix has not.

    x ─ W        =        x / s ─ W * s        s of a column = peak ^ strength / largest weight ^ (1 - strength)

Dividing costs nothing: it is done in what makes the rows. Source: Xiao et al. 2023, "SmoothQuant".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...quant.formats import dequantize
from ...shared_protocol.compile_errors import CompileError
from ...shared_protocol.gguf import Tensor
from ...shared_protocol.model import Model
from .calibrate import Peaks
from .codes import slices

Floats = NDArray[np.float32]
# rows; the matrices that read them; what makes them, and takes the division
MOVES = (
    ("attn_norm", ("attn_q.weight", "attn_k.weight", "attn_v.weight"), ("attn_norm.weight",)),
    ("mix.flat", ("attn_output.weight",), ("attn_v.weight", "attn_v.bias")),
    ("ffn_norm", ("ffn_gate.weight", "ffn_up.weight"), ("ffn_norm.weight",)),
    ("ffn_gated", ("ffn_down.weight",), ("ffn_up.weight",)),
)
FLOOR = np.float32(1e-4)  # of the largest: a column that is nearly silent is not blown up further


class ScaledTensor(Tensor):
    """A tensor with each output divided, and each input multiplied, by a factor: float32, made whenever it is asked for."""

    __slots__ = ("columns", "rows", "source")
    source: Tensor
    rows: Floats  # [outputs]
    columns: Floats  # [inputs]

    def __init__(self, source: Tensor, rows: Floats, columns: Floats) -> None:
        fields = {"name": source.name, "type_name": "F32", "shape": source.shape, "source": source, "rows": rows, "columns": columns}
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @property
    def data(self) -> NDArray[np.uint8]:
        scaled: NDArray[Any] = dequantize(self.source) * self.columns / self.rows.reshape(-1, *[1] * (len(self.shape) - 1))
        return scaled.reshape(-1).view(np.uint8)


def smoothed(model: Model, peaks: Peaks, strength: float = 0.5) -> tuple[Model, Peaks]:
    """The model that computes the same but for float32's rounding, and the peaks that it has. `peaks` are from observe, of `model`.

    Its matrices are float32, so w8a8 rounds them as it does any, and nothing can be carried over. Raises CompileError for a strength
    that is not between 0 and 1, and for peaks of another model.
    """
    if not 0 <= strength <= 1:
        raise CompileError(f"strength must be from 0 to 1, found {strength!r:.20}")
    arch, tensors, left = model.architecture, dict(model.tensors), dict(peaks)
    heads = (arch.num_kv_heads, arch.num_heads // arch.num_kv_heads, arch.head_dim)
    for prefix in (f"blk.{layer}." for layer in range(arch.num_layers)):
        for rows, readers, makers in MOVES:
            peak, weights = left.get(prefix + rows), [model.tensors[prefix + reader] for reader in readers]
            if peak is None or peak.shape != weights[0].shape[1:]:
                raise CompileError(f"there are no peaks for {prefix + rows}", hint="observe the graph of the same model")
            shared = heads if rows == "mix.flat" else (1, 1, len(peak))  # query heads of one key head come from the same values
            factors = _factors(peak, _largest(weights), strength, shared)
            left[prefix + rows] = peak / np.broadcast_to(factors, shared).reshape(-1)
            for matrix in weights:
                tensors[matrix.name] = _scaled(tensors[matrix.name], columns=np.broadcast_to(factors, shared).reshape(-1))
            for name in (prefix + maker for maker in makers if prefix + maker in tensors):
                tensors[name] = _scaled(tensors[name], rows=factors.reshape(-1))
    return dataclasses.replace(model, tensors=tensors), left


def _factors(peak: Floats, weights: Floats, strength: float, shared: tuple[int, int, int]) -> Floats:
    """s of every column, around 1: [groups, 1, columns], one for the columns that stand in one place of a group."""
    peak, weights = (one.reshape(shared).max(axis=1, keepdims=True) for one in (peak, weights))
    if not peak.max() or not weights.max():
        return np.ones_like(peak)
    logs = strength * np.log(np.maximum(peak, FLOOR * peak.max())) - (1 - strength) * np.log(np.maximum(weights, FLOOR * weights.max()))
    factors: Floats = np.exp(logs - logs.mean()).astype(np.float32)
    return factors


def _largest(matrices: Sequence[Tensor]) -> Floats:
    """The largest magnitude that each input is multiplied with."""
    found = [np.abs(dequantize(part)).max(axis=0) for matrix in matrices for part in slices(matrix)]
    largest: Floats = np.max(found, axis=0)
    return largest


def _scaled(tensor: Tensor, rows: Floats | None = None, columns: Floats | None = None) -> ScaledTensor:
    """With factors on top of those that it has; a vector has outputs only."""
    before = tensor if isinstance(tensor, ScaledTensor) else None
    rows = np.ones(tensor.shape[0], np.float32) if rows is None else rows
    columns = np.ones(math.prod(tensor.shape[1:]), np.float32) if columns is None else columns
    return ScaledTensor(before.source, before.rows * rows, before.columns * columns) if before else ScaledTensor(tensor, rows, columns)
