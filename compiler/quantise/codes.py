"""A matrix of a model as codes, scales and offsets: taken out of its blocks where the layout holds them, else rounded anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...npu_backends.ir.kinds import GROUP
from ...npu_backends.ir.semantics import quantise_rows
from ...quant.block_codes import OFFSETS, Parts, parts_of
from ...quant.blocks_iq4 import LEVELS
from ...quant.formats import dequantize, format_of
from ...shared_protocol.compile_errors import CompileError
from ...shared_protocol.gguf import Tensor
from .layout import EXACT, Layout

Floats = NDArray[np.float32]
_AT_ONCE = 1 << 20  # weights that are taken apart at any moment


@dataclass(frozen=True, slots=True)
class Codes:
    codes: NDArray[Any]  # int8, or a byte for each code of 4 bits [outputs, inputs]
    scales: Floats  # [outputs], or [outputs, groups]
    offsets: Floats | None

    def values(self) -> Floats:
        """The weights, one rounding each after the product."""
        scales = self.scales[..., None]
        values = self.codes.astype(np.float32).reshape(*self.scales.shape, -1) * scales
        values = values if self.offsets is None else values + self.offsets[..., None]
        return values.reshape(self.codes.shape)


def codes_of(tensor: Tensor, layout: Layout) -> Codes:
    """Raises CompileError for weights that are not finite."""
    exact = EXACT.get(tensor.type_name) == layout
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        made = [_carried(part, layout) if exact else _rounded(part, layout) for part in slices(tensor)]
    joined = Codes(
        np.concatenate([part.codes for part in made]),
        np.concatenate([part.scales for part in made]),
        np.concatenate([part.offsets for part in made if part.offsets is not None]) if layout.offsets else None,
    )
    if not np.isfinite(joined.scales).all() or (joined.offsets is not None and not np.isfinite(joined.offsets).all()):
        raise CompileError(f"the tensor {tensor.name!r} has weights that are not finite; integers cannot hold them")
    return joined


def slices(tensor: Tensor) -> Iterator[Tensor]:
    """Some outputs at a time."""
    outputs, inputs = tensor.shape
    stored, step = tensor.data.reshape(outputs, -1), max(1, _AT_ONCE // inputs)
    for at in range(0, outputs, step):
        part = stored[at : at + step]
        yield Tensor(tensor.name, tensor.type_name, (len(part), inputs), part.reshape(-1))


def _carried(tensor: Tensor, layout: Layout) -> Codes:
    """The content of its blocks."""
    parts = parts_of(tensor.type_name, tensor.data.reshape(-1, format_of(tensor).block_bytes))
    each = (tensor.shape[0], -1)
    scales, offsets = _scales(tensor.type_name, parts)
    codes = parts.codes
    if tensor.type_name.startswith("IQ4"):
        codes = LEVELS.astype(np.int8)[codes & 15]
    elif layout.codes == "i8":
        codes = codes.view(np.int8) - np.int8(OFFSETS.get(tensor.type_name, 0))
    elif offsets is None:  # codes around 8, in a layout whose codes begin at 0
        offsets = scales * np.float32(-OFFSETS[tensor.type_name])
    return Codes(codes.reshape(tensor.shape), scales.reshape(each), None if offsets is None else offsets.reshape(each))


def _scales(type_name: str, parts: Parts) -> tuple[Floats, Floats | None]:
    """The scale and, where there is one, the offset of every group, [blocks, groups]; computed as weights_of does."""
    fields, header = np.ascontiguousarray(parts.fields), np.ascontiguousarray(parts.header).view(np.float16).astype(np.float32)
    match type_name:
        case "Q4_K" | "Q5_K":
            return header[:, :1] * fields[..., 0].astype(np.float32), -(header[:, 1:] * fields[..., 1].astype(np.float32))
        case "IQ4_XS":
            return header * fields[..., 0].view(np.int8).astype(np.float32), None
    halves = fields.view(np.float16).astype(np.float32)
    return halves[..., 0], halves[..., 1] if halves.shape[-1] == 2 else None


def _rounded(tensor: Tensor, layout: Layout) -> Codes:
    """The nearest codes, halves to even: around 0 up to the largest magnitude, or between the lowest and the highest value."""
    values = dequantize(tensor)
    if not np.isfinite(values).all():
        raise CompileError(f"the tensor {tensor.name!r} has weights that are not finite; integers cannot hold them")
    groups = values.reshape(-1, GROUP) if layout.grouped else values
    each = (len(values), -1) if layout.grouped else (len(values),)
    if not layout.offsets:
        codes, scales = quantise_rows(groups, None)
        return Codes(codes.reshape(values.shape), scales.reshape(each), None)
    low, high = groups.min(axis=1, keepdims=True), groups.max(axis=1, keepdims=True)
    scale = (high - low) / np.float32(15)
    steps = np.divide(groups - low, scale, out=np.zeros_like(groups), where=scale > 0)
    codes = np.clip(np.rint(steps), 0, 15).astype(np.uint8)
    return Codes(codes.reshape(values.shape), scale.reshape(each), low.reshape(each))
