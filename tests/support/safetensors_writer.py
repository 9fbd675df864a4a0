"""Writes safetensors files for tests, independent of the reader: plain `struct` and `json`, from the published layout."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Packed = tuple[str, tuple[int, ...], bytes]  # dtype, shape, bytes


def file_of(header: object, data: bytes = b"") -> bytes:
    """`header` is bytes as they are, or anything that JSON can say."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: object = "F32", shape: object = (1,), begin: object = 0, end: object = 4) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def packed(values: Floats, dtype: str = "F32") -> Packed:
    """float32 values as a file holds them; BF16 by dropping the lower half, so exact only for values that it can hold."""
    match dtype:
        case "F32":
            raw = values.astype("<f4").tobytes()
        case "F16":
            raw = values.astype("<f2").tobytes()
        case "BF16":
            raw = (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        case _:
            raise ValueError(dtype)
    return dtype, values.shape, raw


def write_safetensors(path: Path, tensors: Mapping[str, Packed], metadata: Mapping[str, str] | None = None) -> Path:
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = entry(dtype, shape, at, at + len(raw))
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(file_of(text, b"".join(raw for _, _, raw in tensors.values())))
    return path


def write_shards(folder: Path, tensors: Mapping[str, Packed], shards: int) -> None:
    """The tensors over several files in turn, and the index."""
    names = [f"model-{number + 1:05}-of-{shards:05}.safetensors" for number in range(shards)]
    weight_map = {tensor: names[index % shards] for index, tensor in enumerate(tensors)}
    for name in names:
        write_safetensors(folder / name, {tensor: spec for tensor, spec in tensors.items() if weight_map[tensor] == name})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": weight_map}))
