"""A model's weights as the kernels read them: every matrix repacked into panels, the vectors as float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...quant.repack import packed_bytes, panel_format, repack
from ...shared_protocol.gguf import Tensor
from ...shared_protocol.model import Model
from .library import MATRICES, Layer, Matrix

ALIGNMENT = 64  # bytes, of every matrix
PARTS = dict(
    zip(MATRICES, ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"), strict=True)
)  # field of Layer -> GGUF's name


class Weights:
    """Owner of all memory that the kernels point into: one arena of panels, and the float32 vectors."""

    def __init__(self, model: Model) -> None:
        self._tensors = model.tensors
        matrices = {name: tensor for name, tensor in model.tensors.items() if len(tensor.shape) == 2}
        sizes = {name: (packed_bytes(tensor) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT for name, tensor in matrices.items()}
        arena = np.empty(sum(sizes.values()) + ALIGNMENT, np.uint8)
        self._arrays: list[NDArray[Any]] = [arena]
        self._matrices: dict[str, Matrix] = {}
        at = -arena.ctypes.data % ALIGNMENT
        for name, tensor in matrices.items():
            panels = repack(tensor, arena[at : at + packed_bytes(tensor)])
            rows, columns = tensor.shape
            self._matrices[name] = Matrix(panels.ctypes.data, panel_format(tensor).kind, rows, columns)
            at += sizes[name]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    def matrix(self, name: str) -> Matrix:
        return self._matrices[name]

    def vector(self, name: str) -> int:
        tensor: Tensor = self._tensors[name]
        return self.keep(tensor.data.view(np.float32).copy())

    def keep(self, array: NDArray[np.float32]) -> int:
        """Keep `array` alive as long as the kernels may read it; return its address."""
        self._arrays.append(array)
        return array.ctypes.data

    def layer(self, number: int) -> Layer:
        prefix = f"blk.{number}."
        parts = {field: self.matrix(f"{prefix}{name}.weight") for field, name in PARTS.items()}
        return Layer(attention_norm=self.vector(f"{prefix}attn_norm.weight"), ffn_norm=self.vector(f"{prefix}ffn_norm.weight"), **parts)

    def drop(self) -> None:
        self._arrays.clear()
