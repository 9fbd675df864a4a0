"""One safetensors file: its header, and the tensors that it names."""

from __future__ import annotations

import json
import struct

from hybrid.shared_protocol.errors import HybridError
from hybrid.shared_protocol.safetensors import read_safetensors
from hybrid.tests.fuzz.scratch import write


def run(data: bytes) -> None:
    try:
        tensors = read_safetensors(write("fuzz.safetensors", data))
    except HybridError:
        return
    for tensor in tensors.values():
        assert 0 < tensor.data.nbytes <= len(data)
        tensor.data.sum()


def seeds() -> list[bytes]:
    entry = {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}
    other = {"dtype": "BF16", "shape": [3], "data_offsets": [8, 14]}
    headers = [{"a": entry}, {"b": other, "a": entry, "__metadata__": {"format": "pt"}}, {}]
    return [_file(json.dumps(header).encode()) for header in headers] + [_file(b"[]"), b"", bytes(8), b"\xff" * 8 + b"{}"]


def _file(header: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + bytes(14 if b"BF16" in header else 8)
