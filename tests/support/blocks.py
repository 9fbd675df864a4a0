"""Random GGUF blocks of every type: any codes, with scales of one's choice."""

from __future__ import annotations

import numpy as np
from hybrid.shared_protocol.gguf import GGML_TYPES, Tensor

# where the f16 of a block lie
SCALES_AT = {
    **dict.fromkeys(("Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "IQ4_XS"), (0,)),
    **dict.fromkeys(("Q4_1", "Q5_1", "Q4_K", "Q5_K"), (0, 2)),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q6_K": (208,),
}
FLOATS = {"F16": np.uint16, "BF16": np.uint16, "F32": np.uint32}
TYPES = (*SCALES_AT, *FLOATS)
# halves: zeros, the smallest and the largest subnormal, the smallest normal, 1, -1.5, 65504 and its negative, infinities
EXTREME_HALVES = np.array([0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBE00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00], np.uint16)
FINITE_HALVES = EXTREME_HALVES[:-2]


def random_tensor(type_name: str, rows: int, columns: int, seed: int = 0, halves: np.ndarray | None = None) -> Tensor:
    """A matrix of random codes; its f16 scales are drawn from `halves`, or are about as large as a model's."""
    rng = np.random.default_rng(seed)
    elements, block_bytes = GGML_TYPES[type_name]
    if type_name in FLOATS:
        values = rng.standard_normal((rows, columns)).astype(np.float32) * np.float32(0.1)
        bits = values.view(np.uint32)
        raw = values.astype(np.float16) if type_name == "F16" else (bits >> 16).astype(np.uint16) if type_name == "BF16" else values
        return Tensor("t", type_name, (rows, columns), raw.view(np.uint8).reshape(-1))
    blocks = rng.integers(0, 256, (rows * columns // elements, block_bytes), np.uint8)
    for at in SCALES_AT[type_name]:
        drawn = (
            rng.standard_normal(len(blocks)).astype(np.float16) * np.float16(0.01) if halves is None else rng.choice(halves, len(blocks))
        )
        blocks[:, at : at + 2] = drawn.view(np.uint8).reshape(-1, 2)
    return Tensor("t", type_name, (rows, columns), blocks.reshape(-1))
