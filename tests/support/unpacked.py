"""A GGUF file written once more with every weight as float32, so that two implementations can be held to each other without int8 noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hybrid.quant.formats import dequantize
from hybrid.shared_protocol.gguf import TYPE_IDS, read_gguf
from hybrid.tests.support.gguf_writer import header, string, tensor_header, value

ALIGNMENT = 32


def write_unpacked(source: Path, target: Path) -> Path:
    """One tensor in memory at a time."""
    gguf = read_gguf(source)
    parts, offset = [header(len(gguf.tensors), len(gguf.metadata))], 0
    for key, item in gguf.metadata.items():
        parts.append(string(key) + value(item.tolist() if isinstance(item, np.ndarray) else item))
    for name, tensor in gguf.tensors.items():
        parts.append(tensor_header(name, list(reversed(tensor.shape)), TYPE_IDS["F32"], offset))
        size = 4 * int(np.prod(tensor.shape))
        offset += size + -size % ALIGNMENT
    head = b"".join(parts)
    with target.open("wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for tensor in gguf.tensors.values():
            raw = np.ascontiguousarray(dequantize(tensor), np.float32)
            file.write(raw.data.cast("B"))
            file.write(bytes(-raw.nbytes % ALIGNMENT))
    return target
