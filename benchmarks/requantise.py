"""A GGUF file once more with its matrices in llama.cpp's Q4_0: the type for which llama.cpp has its fastest kernels, at a cost in accuracy.

The bytes are those of llama.cpp's own quantiser (`ggml_quantize_chunk`). As its `llama-quantize Q4_0` does, the output matrix, or the
embedding that serves as one, is not taken down to four bits; here it stays as it is.
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path

import numpy as np
from hybrid.edge.llama_cpp.library import load_library
from hybrid.quant.formats import dequantize
from hybrid.shared_protocol.gguf import GGML_TYPES, TYPE_IDS, GgufFile, Tensor, read_gguf

TARGET = "Q4_0"


def requantise(source: Path, target: Path) -> Path:
    """Write `target` and return it."""
    gguf = read_gguf(source)
    quantise = _quantiser()
    kept = "output.weight" if "output.weight" in gguf.tensors else "token_embd.weight"
    tensors = [
        quantise(tensor) if len(tensor.shape) == 2 and name != kept and tensor.shape[1] % 32 == 0 else tensor
        for name, tensor in gguf.tensors.items()
    ]
    head = _keys(gguf, source.read_bytes())
    infos, at = b"", 0
    for tensor in tensors:
        name = tensor.name.encode()
        dims = tensor.shape[::-1]
        infos += struct.pack("<Q", len(name)) + name
        infos += struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, TYPE_IDS[tensor.type_name], at)
        at += -(-tensor.data.nbytes // gguf.alignment) * gguf.alignment
    with target.open("wb") as file:
        file.write(head + infos)
        for tensor in tensors:
            file.write(bytes(-file.tell() % gguf.alignment))
            file.write(tensor.data)
        file.write(bytes(-file.tell() % gguf.alignment))
    return target


def _keys(gguf: GgufFile, whole: bytes) -> bytes:
    """The file up to its first tensor's name: header and metadata, as they are."""
    name = next(iter(gguf.tensors)).encode()
    return whole[: whole.index(struct.pack("<Q", len(name)) + name)]


def _quantiser():  # type: ignore[no-untyped-def]
    chunk = load_library().functions.ggml_quantize_chunk
    chunk.restype = ctypes.c_size_t
    chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p]

    def quantise(tensor: Tensor) -> Tensor:
        values = np.ascontiguousarray(dequantize(tensor))
        rows, columns = tensor.shape
        elements, block_bytes = GGML_TYPES[TARGET]
        out = np.empty(rows * columns // elements * block_bytes, np.uint8)
        written = chunk(TYPE_IDS[TARGET], values.ctypes.data, out.ctypes.data, 0, rows, columns, None)
        assert written == out.nbytes
        return Tensor(tensor.name, TARGET, tensor.shape, out)

    return quantise
