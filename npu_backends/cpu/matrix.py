"""One weight matrix on the native kernels, by itself: packed into panels, read back by rows, multiplied with."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from ...quant.repack import PANEL, packed_bytes, panel_format
from ...shared_protocol.errors import EngineFailed
from ...shared_protocol.gguf import GGML_TYPES, Tensor
from .library import Matrix, Native


def pack(native: Native, tensor: Tensor, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """What quant/repack.py's `repack` returns, made by the native library.

    Raises ModelFileError for a matrix that has no panels.
    """
    form, (rows, columns) = panel_format(tensor), tensor.shape
    if out is None:
        out = np.empty(packed_bytes(tensor), np.uint8)
    assert out.nbytes == packed_bytes(tensor) and out.flags.c_contiguous
    blocks = np.ascontiguousarray(tensor.data)
    native.library.hybrid_pack(form.kind, blocks.ctypes.data, GGML_TYPES[tensor.type_name][1], rows, columns, out.ctypes.data)
    return out


def load_row(native: Native, tensor: Tensor, panels: NDArray[np.uint8], row: int) -> NDArray[np.float32]:
    """Row `row` of the matrix whose panels these are, float32 [columns], exactly as it dequantises."""
    assert 0 <= row < tensor.shape[0] and panels.nbytes == packed_bytes(tensor)
    out = np.empty(tensor.shape[1], np.float32)
    native.library.hybrid_load_row(ctypes.byref(_matrix(tensor, panels)), row, out.ctypes.data)
    return out


def multiply(native: Native, tensor: Tensor, panels: NDArray[np.uint8], x: NDArray[np.float32], isa: str = "") -> NDArray[np.float32]:
    """x [rows, columns], rounded to int8 per group of 32, times the matrix [outputs, columns]: float32 [rows, outputs].

    `isa` names an instruction set other than the best. Raises EngineFailed when it is not there, or memory is short.
    """
    assert x.dtype == np.float32 and x.shape[1] == tensor.shape[1] and panels.nbytes == packed_bytes(tensor)
    x = np.ascontiguousarray(x)
    out = np.empty((len(x), -(-tensor.shape[0] // PANEL) * PANEL), np.float32)
    matrix = _matrix(tensor, panels)
    if native.library.hybrid_multiply(ctypes.byref(matrix), isa.encode(), x.ctypes.data, len(x), out.ctypes.data):
        raise EngineFailed(f"a matrix of {list(tensor.shape)} could not be multiplied: too little memory, or no instruction set {isa!r}")
    return out[:, : tensor.shape[0]]


def _matrix(tensor: Tensor, panels: NDArray[np.uint8]) -> Matrix:
    return Matrix(panels.ctypes.data, panel_format(tensor).kind, *tensor.shape)
