"""GGUF blocks in the order in which the CPU kernels read them: a permutation of bytes, so nothing can be lost.

A panel is 16 rows of the matrix; per group of 32 inputs the panel holds its 16 blocks word by word:

    GGUF, one row           | block of group 0 | block of group 1 | ...      block: scales, then codes
    panel, one group        | word 0 of rows 0..15 | word 1 of rows 0..15 | ... | first scale of rows 0..15 | ...

The same picture with bytes stands in npu_backends/cpu/kernels/panels.h. Rows are filled up to a multiple of 16 with zero blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.errors import ModelFileError
from ..shared_protocol.gguf import GGML_TYPES, Tensor
from .formats import FORMATS

LAYOUT = 1  # of the bytes below; another number for another order, or kept panels would be read wrongly
PANEL = 16  # rows
GROUP = 32  # inputs that share a scale


@dataclass(frozen=True, slots=True)
class PanelFormat:
    """How one GGUF block is cut: `scales` f16 at its start, then `words` runs of 4 bytes of codes."""

    kind: int  # `Kind` in panels.h
    scales: int
    words: int

    @property
    def block_bytes(self) -> int:
        return 2 * self.scales + 4 * self.words


PANEL_FORMATS: Mapping[str, PanelFormat] = MappingProxyType(
    {"Q4_1": PanelFormat(0, scales=2, words=4), "Q8_0": PanelFormat(1, scales=1, words=8)}
)
assert all(form.block_bytes == GGML_TYPES[name][1] for name, form in PANEL_FORMATS.items())


def packed_bytes(tensor: Tensor) -> int:
    """Bytes of the panels of a matrix. Raises ModelFileError for a type without a panel format."""
    form = panel_format(tensor)
    rows, columns = tensor.shape
    return _padded(rows) * (columns // GROUP) * form.block_bytes


def panel_format(tensor: Tensor) -> PanelFormat:
    form = PANEL_FORMATS.get(tensor.type_name)
    if form is None:
        raise ModelFileError(
            f"the tensor {tensor.name!r} has the type {tensor.type_name}; the native kernels read {', '.join(PANEL_FORMATS)}",
            hint="the NumPy reference reads it: HYBRID_BACKEND=reference",
        )
    return form


def repack(tensor: Tensor, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Return the panels of a matrix [rows, columns], uint8 [packed_bytes(tensor)], written into `out` when given."""
    form = panel_format(tensor)
    rows, columns = tensor.shape
    if out is None:
        out = np.empty(packed_bytes(tensor), np.uint8)
    blocks = tensor.data.reshape(rows, columns // GROUP, form.block_bytes)
    whole = rows // PANEL * PANEL
    target = out.reshape(-1, columns // GROUP, PANEL * form.block_bytes)  # [panels, groups, bytes]
    _write_panels(blocks[:whole], target[: whole // PANEL], form)
    if whole < rows:
        last = np.zeros((PANEL, *blocks.shape[1:]), np.uint8)
        last[: rows - whole] = blocks[whole:]
        _write_panels(last, target[whole // PANEL :], form)
    return out


def unpack(panels: NDArray[np.uint8], type_name: str, shape: tuple[int, int]) -> NDArray[np.float32]:
    """The inverse: the float32 values of the matrix whose panels these are."""
    form, (rows, columns) = PANEL_FORMATS[type_name], shape
    groups = columns // GROUP
    source = panels.reshape(-1, groups, PANEL * form.block_bytes)
    blocks = np.empty((_padded(rows), groups, form.block_bytes), np.uint8)
    for to, at in _views(blocks, source, form):
        to[...] = at
    return FORMATS[type_name].unpack(blocks[:rows].reshape(-1, form.block_bytes)).reshape(shape)


def _write_panels(blocks: NDArray[np.uint8], panels: NDArray[np.uint8], form: PanelFormat) -> None:
    for at, to in _views(blocks, panels, form):
        to[...] = at


def _views(blocks: NDArray[np.uint8], panels: NDArray[np.uint8], form: PanelFormat) -> list[tuple[NDArray[np.uint16], NDArray[np.uint16]]]:
    """Views of blocks [rows, groups, bytes] and of panels with equal shapes: codes [panels, groups, 16, words, 2], scales [.., 16, n]."""
    groups, split = blocks.shape[1], 2 * form.words * PANEL
    rows = blocks.view(np.uint16).reshape(-1, PANEL, groups, form.block_bytes // 2).transpose(0, 2, 1, 3)
    runs = panels.view(np.uint16)
    codes = runs[..., :split].reshape(-1, groups, form.words, PANEL, 2)
    scales = runs[..., split:].reshape(-1, groups, form.scales, PANEL)
    return [
        (rows[..., form.scales :].reshape(-1, groups, PANEL, form.words, 2), codes.transpose(0, 1, 3, 2, 4)),
        (rows[..., : form.scales], scales.transpose(0, 1, 3, 2)),
    ]


def _padded(rows: int) -> int:
    return (rows + PANEL - 1) // PANEL * PANEL
