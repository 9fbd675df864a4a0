"""What each kind of operation computes, in NumPy: the meaning that interpreter, simulator and conformance kit share.

Float operations compute every row alone, in the order of the CPU's NumPy reference (../cpu/reference.py), so that both have the same
bits. Products of int8 are exact: at most 1,024 of them are added in float32, whose 24 bits hold every such sum, and those sums in int32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.elementwise import Floats, gelu_tanh, rotate, silu, soft_cap
from .kinds import GROUP
from .op import Op

Array = NDArray[Any]
EXACT = 1024  # 1,024 * 127 * 128 < 2^24
AT_ONCE = 1 << 18  # weights that are float32 at any moment, of a row of the usual size
QUIETEST = np.float32(1e-30)  # rows below it are zero


def integer_products(codes: Array, weights: Array) -> NDArray[np.int32]:
    """int8 [R,K] times the transpose of int8 or 4-bit [N,K], added up in int32 [R,N], exactly."""
    total = np.empty((len(codes), len(weights)), np.int32)
    floats = codes.astype(np.float32)
    for outputs, block in _blocks(weights):
        first, *rest = range(0, codes.shape[1], EXACT)
        total[:, outputs] = floats[:, first : first + EXACT] @ block[:, first : first + EXACT].T
        for at in rest:
            total[:, outputs] += (floats[:, at : at + EXACT] @ block[:, at : at + EXACT].T).astype(np.int32)
    return total


def _blocks(weights: Array) -> Iterator[tuple[slice, Floats]]:
    """Some outputs' codes at a time as float32, always in the same memory, so that they stay in the cache."""
    step = max(512, AT_ONCE // weights.shape[1])
    floats = np.empty((min(step, len(weights)), weights.shape[1]), np.float32)
    for at in range(0, len(weights), step):
        part = weights[at : at + step]
        floats[: len(part)] = part
        yield slice(at, at + step), floats[: len(part)]


def quantise_rows(x: Floats, static: float | None) -> tuple[NDArray[np.int8], Floats]:
    """Codes in -127..127 and one scale a row: its largest magnitude / 127, or the static one. Halves go to even."""
    if static is not None:
        scales = np.full(len(x), static, np.float32)
        inverse = np.full((len(x), 1), np.float32(1) / np.float32(static))
    else:
        peak = np.abs(x).max(axis=1)
        empty = peak <= QUIETEST
        scales = np.where(empty, np.float32(0), peak / np.float32(127)).astype(np.float32)
        inverse = np.divide(np.float32(127), peak, out=np.zeros_like(peak), where=~empty)[:, None]
    return np.clip(np.rint(x * inverse), -127, 127).astype(np.int8), scales


def linear_i8(codes: Array, scales: Floats, weights: Array, weight_scales: Floats) -> Floats:
    """Sums times (row's scale times output's scale)."""
    result: Floats = integer_products(codes, weights).astype(np.float32) * (scales[:, None] * weight_scales[None, :])
    return result


def linear_g32(codes: Array, scales: Floats, weights: Array, weight_scales: Floats, offsets: Floats | None = None) -> Floats:
    """A weight is code * scale (+ offset) of its group of 32. Per output, in float32, starting at 0, for every group in ascending order:
    plus (sum of products) * scale, then, where there are offsets, plus (sum of codes) * offset; in the end times the row's scale."""
    grouped = codes.astype(np.float32).reshape(len(codes), -1, GROUP).transpose(1, 0, 2)  # [groups, R, 32]
    code_sums = grouped.sum(axis=2, keepdims=True)  # exact, as the products are
    grouped = np.ascontiguousarray(grouped)
    total = np.zeros((len(codes), len(weights)), np.float32)
    for outputs, block in _blocks(weights):
        part, block_scales = total[:, outputs], np.ascontiguousarray(weight_scales[outputs].T)
        block_offsets = np.ascontiguousarray(offsets[outputs].T) if offsets is not None else None
        products = grouped @ block.reshape(len(block), -1, GROUP).transpose(1, 2, 0)  # [groups, R, outputs]
        for group, product in enumerate(products):
            product *= block_scales[group]
            part += product
            if block_offsets is not None:
                np.multiply(code_sums[group], block_offsets[group], out=product)
                part += product
    result: Floats = total * scales[:, None]
    return result


def visible(position: int, row: int, window: int) -> slice:
    """Positions that a row sees: up to its own, at most `window` of them (0: all)."""
    end = position + row + 1
    return slice(max(0, end - window) if window else 0, end)


def _embed_g32(op: Op, codes: Array, *rest: Array) -> tuple[Array, ...]:
    scales, *offsets, ids = rest
    values = codes[ids].astype(np.float32).reshape(len(ids), -1, GROUP) * scales[ids][:, :, None]
    if offsets:
        values = values + offsets[0][ids][:, :, None]
    return (values.reshape(len(ids), -1),)


def _rms_norm(op: Op, x: Floats, gain: Floats) -> tuple[Array, ...]:
    mean_square = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
    return (x * (np.float32(1) / np.sqrt(mean_square + np.float32(op.number("eps")))) * gain,)


def _linear(op: Op, x: Floats, weights: Floats) -> tuple[Array, ...]:
    return (np.stack([weights @ row for row in x]),)


def _quantise(op: Op, x: Floats) -> tuple[Array, ...]:
    return quantise_rows(x, op.number("scale") if op.attributes else None)


def _rotary(op: Op, x: Floats, cosines: Floats, sines: Floats, position: Array) -> tuple[Array, ...]:
    start = int(position[0])
    tables = np.stack([cosines[start : start + len(x)], sines[start : start + len(x)]], axis=2)
    return (np.stack([rotate(row, table, bool(op.integer("interleaved"))) for row, table in zip(x, tables, strict=True)]),)


def _cache_write(op: Op, cache: Array, x: Floats, position: Array) -> tuple[Array, ...]:
    written, start = cache.copy(), int(position[0])
    written[:, start : start + len(x)] = x.transpose(1, 0, 2)
    return (written,)


def _scores(op: Op, query: Floats, keys: Array, position: Array) -> tuple[Array, ...]:
    scores = np.zeros((*query.shape[:2], keys.shape[1]), np.float32)
    for row, heads in enumerate(query):
        seen = visible(int(position[0]), row, int(op.number("window", 0)))
        shared = heads.reshape(len(keys), -1, heads.shape[1]) * np.float32(op.number("scale"))
        raw = shared @ np.ascontiguousarray(keys[:, seen].astype(np.float32).transpose(0, 2, 1))
        scores[row, :, seen] = soft_cap(raw, op.number("softcap", 0.0)).reshape(query.shape[1], -1)
    return (scores,)


def _softmax(op: Op, scores: Floats, position: Array) -> tuple[Array, ...]:
    """What is not seen weighs nothing."""
    weights = np.zeros_like(scores)
    for row, raw in enumerate(scores):
        seen = visible(int(position[0]), row, int(op.number("window", 0)))
        part = np.ascontiguousarray(raw[:, seen])
        part = np.exp(part - part.max(axis=-1, keepdims=True))
        part /= part.sum(axis=-1, keepdims=True)
        weights[row, :, seen] = part
    return (weights,)


def _mix(op: Op, weights: Floats, values: Array, position: Array) -> tuple[Array, ...]:
    rows = []
    for row, heads in enumerate(weights):
        seen = visible(int(position[0]), row, int(op.number("window", 0)))
        shared = np.ascontiguousarray(heads[:, seen]).reshape(len(values), -1, seen.stop - seen.start)
        rows.append((shared @ np.ascontiguousarray(values[:, seen].astype(np.float32))).reshape(len(heads), -1))
    return (np.stack(rows),)


SEMANTICS: Mapping[str, Callable[..., tuple[Array, ...]]] = MappingProxyType(
    {
        "embed": lambda op, table, ids: (table[ids].astype(np.float32),),
        "embed_i8": lambda op, codes, scales, ids: (codes[ids].astype(np.float32) * scales[ids][:, None],),
        "embed_g32": _embed_g32,
        "rms_norm": _rms_norm,
        "linear": _linear,
        "quantise": _quantise,
        "linear_i8": lambda op, *inputs: (linear_i8(*inputs),),
        "linear_g32": lambda op, *inputs: (linear_g32(*inputs),),
        "rotary": _rotary,
        "cache_write": _cache_write,
        "scores": _scores,
        "softmax": _softmax,
        "mix": _mix,
        "add": lambda op, x, y: (x + y,),
        "multiply": lambda op, x, y: (x * y,),
        "silu": lambda op, x: (silu(x),),
        "gelu": lambda op, x: (gelu_tanh(x),),
        "softcap": lambda op, x: (soft_cap(x, op.number("cap")),),
        "reshape": lambda op, x: (x.reshape(op.outputs[0].shape),),
        "gather": lambda op, x, index: (x[index],),
    }
)
