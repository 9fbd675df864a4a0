"""GGUF blocks in the order in which the CPU kernels read them: bits change places, so nothing can be lost.

A panel is 16 rows of the matrix; per group of 32 inputs the panel holds the codes of its 16 rows side by side, then their scales:

    GGUF, one row           | block of group 0 | block of group 1 | ...              block: scales and codes
    panel, one group        | word 0 of rows 0..15 | word 1 of rows 0..15 | ... | scales of rows 0..15 |

The picture with bytes stands in npu_backends/cpu/kernels/panels.h. Rows are filled up to a multiple of 16 with zero blocks. Here is the
plain version; where the native library is, kernels/pack.cpp does the same faster.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.errors import ModelFileError
from ..shared_protocol.gguf import GGML_TYPES, Tensor
from .block import Codes
from .block_codes import Parts, parts_of, weights_of
from .formats import FORMATS

LAYOUT = 2  # of the bytes below; another number for another order, or kept panels would be read wrongly
PANEL = 16  # rows
GROUP = 32  # inputs that share a scale
_AT_ONCE = 1 << 20  # weights taken apart at once

# bits of a plane -> the words (runs of 4 inputs) that share a byte, from its low bits up
_WORDS: Mapping[int, list[list[int]]] = MappingProxyType(
    {8: [[w] for w in range(8)], 4: [[w, w + 4] for w in range(4)], 2: [[0, 1, 2, 3], [4, 5, 6, 7]], 1: [list(range(8))]}
)


@dataclass(frozen=True, slots=True)
class PanelFormat:
    """How the panels of a type are built: one row of `kLayouts` in panels.h. Plain floats have no planes."""

    kind: int  # `Kind` in panels.h
    columns: int  # a row is a multiple of these
    planes: tuple[int, ...] = ()  # bits of the code in each, lowest first
    fields: tuple[int, ...] = ()  # bytes per row of each run of scales after a group's codes
    header: int = 0  # f16 per row before every 256 inputs
    float_bytes: int = 0

    @property
    def unit_bytes(self) -> int:
        """Bytes of `columns` inputs of a panel: of one group, or of 8 with their header."""
        group = PANEL * GROUP * sum(self.planes) // 8 + PANEL * sum(self.fields) + PANEL * GROUP * self.float_bytes
        return 2 * PANEL * self.header + self.columns // GROUP * group

    @property
    def bits(self) -> float:
        """Bits per weight in memory, scales included."""
        return self.unit_bytes * 8 / (self.columns * PANEL)


PANEL_FORMATS: Mapping[str, PanelFormat] = MappingProxyType(
    {
        "Q4_1": PanelFormat(0, 32, (4,), (2, 2)),
        "Q8_0": PanelFormat(1, 32, (8,), (2,)),
        "Q5_0": PanelFormat(2, 32, (4, 1), (2,)),
        "Q4_K": PanelFormat(3, 256, (4,), (1, 1), header=2),
        "Q6_K": PanelFormat(4, 256, (4, 2), (2,), header=1),
        "Q4_0": PanelFormat(5, 32, (4,), (2,)),
        "Q5_1": PanelFormat(6, 32, (4, 1), (2, 2)),
        "Q5_K": PanelFormat(7, 256, (4, 1), (1, 1), header=2),
        "IQ4_NL": PanelFormat(8, 32, (4,), (2,)),
        "IQ4_XS": PanelFormat(9, 256, (4,), (1,), header=1),
        "Q3_K": PanelFormat(10, 256, (2, 1), (2,), header=1),
        "Q2_K": PanelFormat(11, 256, (2,), (2,), header=2),
        "F16": PanelFormat(12, 32, float_bytes=2),
        "BF16": PanelFormat(13, 32, float_bytes=2),
        "F32": PanelFormat(14, 32, float_bytes=4),
    }
)


def packed_bytes(tensor: Tensor) -> int:
    """Bytes of the panels of a matrix. Raises ModelFileError for a matrix that has no panels."""
    form = panel_format(tensor)
    rows, columns = tensor.shape
    return -(-rows // PANEL) * (columns // form.columns) * form.unit_bytes


def panel_format(tensor: Tensor) -> PanelFormat:
    """How this matrix is packed. Raises ModelFileError, naming it, for a type without panels and for rows that do not fill groups."""
    form = PANEL_FORMATS.get(tensor.type_name)
    if form is None:
        raise ModelFileError(
            f"the tensor {tensor.name!r} has the type {tensor.type_name}; the native kernels read {', '.join(PANEL_FORMATS)}"
        )
    if len(tensor.shape) != 2 or tensor.shape[1] % form.columns or not tensor.shape[1]:
        raise ModelFileError(
            f"the tensor {tensor.name!r} has the shape {list(tensor.shape)}; the native kernels need rows of a multiple of {form.columns} "
            f"weights for {tensor.type_name}",
            hint="the NumPy reference reads it: HYBRID_BACKEND=reference",
        )
    return form


def bits_held(matrices: Collection[Tensor]) -> str:
    """Say how many bits a weight takes in panels and in the file, and which types are wider here and why."""
    weights = sum(math.prod(tensor.shape) for tensor in matrices)
    held = 8 * sum(map(packed_bytes, matrices)) / max(1, weights)
    stored = sum(math.prod(tensor.shape) * FORMATS[tensor.type_name].bits for tensor in matrices) / max(1, weights)
    types = sorted({tensor.type_name for tensor in matrices if PANEL_FORMATS[tensor.type_name].bits > FORMATS[tensor.type_name].bits})
    wider = ", ".join(f"{name} {PANEL_FORMATS[name].bits:g} for {FORMATS[name].bits:g}" for name in types)
    return f"{held:.3f} bits per weight in panels, {stored:.3f} in the file" + (f"; scales take whole bytes in {wider}" if wider else "")


def repack(tensor: Tensor, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Return the panels of a matrix [rows, columns], uint8 [packed_bytes(tensor)], written into `out` when given."""
    form = panel_format(tensor)
    rows, columns = tensor.shape
    if out is None:
        out = np.empty(packed_bytes(tensor), np.uint8)
    blocks = tensor.data.reshape(rows, -1)
    panels = out.reshape(-1, columns // form.columns, form.unit_bytes)
    step = max(1, _AT_ONCE // (columns * PANEL))
    for first in range(0, len(panels), step):
        part = panels[first : first + step]
        some = blocks[first * PANEL : (first + len(part)) * PANEL]
        if len(some) < len(part) * PANEL:
            some = np.concatenate([some, np.zeros((len(part) * PANEL - len(some), some.shape[1]), np.uint8)])
        if form.float_bytes:
            cells = some.reshape(len(part), PANEL, -1, GROUP, form.float_bytes)
            part.reshape(len(part), -1, GROUP, PANEL, form.float_bytes)[...] = cells.transpose(0, 2, 3, 1, 4)
        else:
            _write(part, some.reshape(-1, GGML_TYPES[tensor.type_name][1]), tensor.type_name, form)
    return out


def unpack(panels: NDArray[np.uint8], type_name: str, shape: tuple[int, int]) -> NDArray[np.float32]:
    """The inverse: the float32 values of the matrix whose panels these are."""
    form, (rows, columns) = PANEL_FORMATS[type_name], shape
    units = panels.reshape(-1, columns // form.columns, form.unit_bytes)
    if form.float_bytes:
        cells = units.reshape(len(units), -1, GROUP, PANEL, form.float_bytes).transpose(0, 3, 1, 2, 4)
        values = FORMATS[type_name].unpack(np.ascontiguousarray(cells).reshape(-1, form.float_bytes))
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            values = weights_of(type_name, _read(units, form))
    return values.reshape(-1, columns)[:rows]


def _write(panels: Codes, blocks: Codes, type_name: str, form: PanelFormat) -> None:
    """Fill panels [n, units, bytes] from the blocks of their rows, [n * 16 * units, bytes]."""
    parts, (count, units, _) = parts_of(type_name, blocks), panels.shape
    groups = form.columns // GROUP
    codes = parts.codes.reshape(count, PANEL, units, groups, 8, 4).transpose(0, 2, 3, 4, 1, 5)  # [n, units, groups, word, row, input]
    fields = parts.fields.reshape(count, PANEL, units, groups, -1).transpose(0, 2, 3, 1, 4)
    header, body = panels[..., : 2 * PANEL * form.header], panels[..., 2 * PANEL * form.header :].reshape(count, units, groups, -1)
    if form.header:
        header.reshape(count, units, form.header, PANEL, 2)[...] = parts.header.reshape(count, PANEL, units, -1, 2).transpose(0, 2, 3, 1, 4)
    at = shift = taken = 0
    for bits in form.planes:
        for words in _WORDS[bits]:
            byte = np.zeros((count, units, groups, PANEL, 4), np.uint8)
            for place, word in enumerate(words):
                byte |= (codes[..., word, :, :] >> shift & (1 << bits) - 1) << bits * place
            body[..., at : at + 64] = byte.reshape(count, units, groups, 64)
            at += 64
        shift += bits
    for width in form.fields:
        run = fields[..., taken : taken + width]
        body[..., at : at + PANEL * width] = run.reshape(count, units, groups, PANEL * width)
        at, taken = at + PANEL * width, taken + width


def _read(panels: Codes, form: PanelFormat) -> Parts:
    """The parts of the blocks of these panels, in the order of the file."""
    count, units, _ = panels.shape
    groups = form.columns // GROUP
    header, body = panels[..., : 2 * PANEL * form.header], panels[..., 2 * PANEL * form.header :].reshape(count, units, groups, -1)
    codes = np.zeros((count, units, groups, 8, PANEL, 4), np.uint8)
    at = shift = 0
    for bits in form.planes:
        for words in _WORDS[bits]:
            byte = body[..., at : at + 64].reshape(count, units, groups, PANEL, 4)
            for place, word in enumerate(words):
                codes[..., word, :, :] |= (byte >> bits * place & (1 << bits) - 1) << shift
            at += 64
        shift += bits
    runs = []
    for width in form.fields:
        runs.append(body[..., at : at + PANEL * width].reshape(count, units, groups, PANEL, width))
        at += PANEL * width
    return Parts(
        codes.transpose(0, 4, 1, 2, 3, 5).reshape(-1, groups, GROUP),
        np.concatenate(runs, axis=-1).transpose(0, 3, 1, 2, 4).reshape(-1, groups, sum(form.fields)),
        header.reshape(count, units, form.header, PANEL, 2).transpose(0, 3, 1, 2, 4).reshape(count * PANEL * units, 2 * form.header),
    )
