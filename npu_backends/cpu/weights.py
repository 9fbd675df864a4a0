"""A model's weights as the kernels read them: every matrix repacked into panels, the vectors as float32."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...quant.panel_file import Panels, panels_of, panels_path
from ...quant.repack import bits_held, panel_format
from ...shared_protocol.errors import ConfigError
from ...shared_protocol.gguf import Tensor
from ...shared_protocol.model import Model
from ...shared_protocol.store import Store
from .library import Matrix, Native
from .matrix import pack

log = logging.getLogger(__name__)


class Weights:
    """Owner of all memory that the kernels point into: the panels of the matrices, and the float32 vectors."""

    def __init__(self, model: Model, threads: int, native: Native) -> None:
        self._tensors = model.tensors
        self._arrays: list[NDArray[Any]] = []
        matrices = {name: tensor for name, tensor in model.tensors.items() if len(tensor.shape) == 2}
        self._panels: Panels | None = panels_of(matrices, model.card.file_hash, _kept_at(model), threads, partial(pack, native))
        self._matrices = {
            name: Matrix(self._panels.arrays[name].ctypes.data, panel_format(tensor).kind, *tensor.shape)
            for name, tensor in matrices.items()
        }
        log.info("%s: %s", model.card.name, bits_held(matrices.values()))

    @property
    def nbytes(self) -> int:
        """Bytes of weights in memory, mapped panels included."""
        return sum(array.nbytes for array in self._arrays) + (self._panels.nbytes if self._panels else 0)

    def matrix(self, name: str) -> Matrix:
        return self._matrices[name]

    def vector(self, name: str) -> int:
        tensor: Tensor = self._tensors[name]
        return self.keep(tensor.data.view(np.float32).copy())

    def keep(self, array: NDArray[np.float32]) -> int:
        """Keep `array` alive as long as the kernels may read it; return its address."""
        self._arrays.append(array)
        return array.ctypes.data

    def drop(self) -> None:
        self._arrays.clear()
        self._matrices.clear()
        self._panels = None


def _kept_at(model: Model) -> Path | None:
    """The file for a model's panels; None for a user without a home."""
    try:
        return panels_path(model.path, model.card.file_hash, Store().root)
    except ConfigError:
        return None
