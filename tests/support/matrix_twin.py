"""A weight matrix times int8 inputs once more in NumPy: from the values that each block's formula names, every float32 step in order.

Written from the public layouts of the blocks, not from the panels: shares no code with repacking, and none with the C++.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hybrid.shared_protocol.gguf import Tensor

f32 = np.float32
MultiplyAdd = Callable[[Any, Any, Any], Any]
BOOK = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], f32)


@dataclass(frozen=True)
class Numbers:
    """weight = d * code + m, by groups of 32.

    codes: whole numbers as float32 [rows, groups, 32], times the whole scale of their 16 inputs where there is one; d, m [rows, groups].
    Where 16 inputs have a minimum, it is m times `least` [rows, groups, 2], whole numbers.
    """

    codes: np.ndarray
    d: np.ndarray
    m: np.ndarray | None = None
    least: np.ndarray | None = None


def product(tensor: Tensor, x: np.ndarray, multiply_add: MultiplyAdd) -> np.ndarray:
    """The matrix [rows, columns] times one row x [columns], float32 [rows]."""
    weights = tensor.data.reshape(tensor.shape[0], -1)
    floats = _floats(tensor.type_name, weights)
    numbers = None if floats is not None else numbers_of(tensor.type_name, weights)
    total = np.zeros(tensor.shape[0], f32)
    for group, part in enumerate(x.reshape(-1, 32)):
        peak = np.abs(part).max()
        scale, inverse = (f32(0), f32(0)) if peak <= f32(1e-30) else (peak / f32(127), f32(127) / peak)
        rounded = np.rint(part * inverse)
        if numbers is None:
            assert floats is not None
            products = np.zeros_like(total)
            for i in range(32):
                products = multiply_add(floats[:, 32 * group + i], rounded[i], products)
            total = multiply_add(scale, products, total)
            continue
        # whole numbers below 2^24: exact in any order
        dots = numbers.codes[:, group] @ rounded
        total = multiply_add(numbers.d[:, group] * scale, dots, total)
        if numbers.least is not None:
            assert numbers.m is not None
            sums = numbers.least[:, group] @ rounded.reshape(2, 16).sum(axis=1)
            total = multiply_add(numbers.m[:, group] * scale, sums, total)
        elif numbers.m is not None:
            total = multiply_add(numbers.m[:, group], scale * rounded.sum(), total)
    return total


def numbers_of(type_name: str, rows: np.ndarray) -> Numbers:
    """The numbers of a matrix of a block type, from the bytes of its rows."""
    large = type_name.endswith("_K") or type_name == "IQ4_XS"
    sizes = {"Q4_0": 18, "Q4_1": 20, "Q5_0": 22, "Q5_1": 24, "Q8_0": 34, "IQ4_NL": 18}
    sizes |= {"Q2_K": 84, "Q3_K": 110, "Q4_K": 144, "Q5_K": 176, "Q6_K": 210, "IQ4_XS": 136}
    size = sizes[type_name]
    blocks = rows.reshape(len(rows), -1, size)
    if large:
        return _of_256(type_name, blocks.astype(np.int32))
    fields = {"Q4_1": 2, "Q5_1": 2}.get(type_name, 1)
    scales = [_half(blocks[..., 2 * i : 2 * i + 2].astype(np.int32), 0) for i in range(fields)]
    if type_name == "Q8_0":
        return Numbers(blocks[..., 2:].view(np.int8).astype(f32), scales[0])
    codes = np.concatenate([blocks[..., -16:] % 16, blocks[..., -16:] // 16], axis=-1)
    if type_name.startswith("Q5"):
        fifth = sum(blocks[..., 2 * fields + i].astype(np.int64) << 8 * i for i in range(4))
        codes = codes + 16 * (fifth[..., None] >> np.arange(32) & 1)
    signed = BOOK[codes] if type_name == "IQ4_NL" else codes.astype(f32) - f32({"Q4_0": 8, "Q5_0": 16}.get(type_name, 0))
    return Numbers(signed, scales[0], scales[1] if fields == 2 else None)


def _of_256(type_name: str, b: np.ndarray) -> Numbers:
    """b: int32 [rows, blocks, bytes]. Weight i of a block is computed from its own index, as the reference's loops visit it."""
    i = np.arange(256)
    group, half = i // 32, i // 16
    m = least = None
    if type_name == "Q6_K":
        within, run = i % 128, i // 128
        low = b[..., 64 * run + within % 64] >> 4 * (within // 64) & 15
        codes = (low | (b[..., 128 + 32 * run + within % 32] >> 2 * (within // 32) & 3) << 4) - 32
        scales, d = ((b[..., 192:208] ^ 128) - 128)[..., half], _half(b, 208)
    elif type_name in ("Q2_K", "Q3_K"):
        start = 16 if type_name == "Q2_K" else 32
        codes = b[..., start + 32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3
        if type_name == "Q2_K":
            scales, d = (b[..., :16] & 15)[..., half], _half(b, 80)
            m, least = -_half(b, 82), b[..., :16] >> 4
        else:
            codes = codes - 4 * (1 - (b[..., i % 32] >> group & 1))
            j = np.arange(16)
            six = (b[..., 96 + j % 8] >> 4 * (j // 8) & 15) | (b[..., 104 + j % 4] >> 2 * (j // 4) & 3) << 4
            scales, d = (six - 32)[..., half], _half(b, 108)
    elif type_name == "IQ4_XS":
        codes = BOOK[b[..., 8 + 16 * group + i % 16] >> 4 * (i % 32 // 16) & 15]
        j = np.arange(8)
        six = (b[..., 4 + j // 2] >> 4 * (j % 2) & 15) | (b[..., 2 + j // 4] >> 2 * (j % 4) & 3) << 4
        return _grouped(codes, _repeated(_half(b, 0)) * (six - 32).astype(f32))
    else:  # Q4_K, Q5_K: scale and minimum of a group are floats, each exact
        codes = b[..., (16 if type_name == "Q4_K" else 48) + 32 * (i // 64) + i % 32] >> 4 * (i // 32 % 2) & 15
        if type_name == "Q5_K":
            codes = codes | (b[..., 16 + i % 32] >> group & 1) << 4
        six = [[_six_bits(b[..., 4:16], j, which) for j in range(8)] for which in (0, 1)]
        small = [np.stack(numbers, axis=-1).astype(f32) for numbers in six]
        return _grouped(codes, _repeated(_half(b, 0)) * small[0], -(_repeated(_half(b, 2)) * small[1]))
    return _grouped(codes * scales, _repeated(d), None if m is None else _repeated(m), least)


def _six_bits(packed: np.ndarray, j: int, which: int) -> np.ndarray:
    """Scale (0) or minimum (1) of group j out of 12 bytes."""
    if j < 4:
        return packed[..., j + 4 * which] & 63
    return (packed[..., j + 4] >> 4 * which & 15) | packed[..., j - 4 + 4 * which] >> 6 << 4


def _grouped(codes: np.ndarray, d: np.ndarray, m: np.ndarray | None = None, least: np.ndarray | None = None) -> Numbers:
    rows = len(codes)
    return Numbers(
        codes.astype(f32).reshape(rows, -1, 32),
        d.reshape(rows, -1),
        None if m is None else m.reshape(rows, -1),
        None if least is None else least.astype(f32).reshape(rows, -1, 2),
    )


def _repeated(of_block: np.ndarray) -> np.ndarray:
    """[rows, blocks] -> [rows, blocks, 8]: the same for the groups of a block."""
    return np.repeat(of_block[..., None], 8, axis=-1)


def _half(blocks: np.ndarray, at: int) -> np.ndarray:
    return (blocks[..., at] | blocks[..., at + 1] << 8).astype(np.uint16).view(np.float16).astype(f32)


def _floats(type_name: str, rows: np.ndarray) -> np.ndarray | None:
    rows = np.ascontiguousarray(rows)
    if type_name == "F16":
        return rows.view(np.float16).astype(f32)
    if type_name == "BF16":
        return (rows.view(np.uint16).astype(np.uint32) << 16).view(f32)
    return rows.view(f32) if type_name == "F32" else None
