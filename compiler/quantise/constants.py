"""The arrays behind a quantised graph's constants, and what became of each matrix of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.kinds import GROUP
from ...npu_backends.ir.value import Value
from ...quant.formats import dequantize
from ...shared_protocol.compile_errors import GraphInvalid
from ...shared_protocol.gguf import Tensor
from ...shared_protocol.model import Model
from ..capture.constants import constant_of
from .codes import Codes, codes_of, slices
from .layout import CHANNEL, GROUP4, GROUP8, GROUP8_FROM, Layout
from .quantise_graph import parts_of

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of one matrix."""

    name: str
    source: str  # the type in the file
    format: str  # the chip's name of it
    lossless: bool
    error: float  # root of the mean squared difference, over that of the weights


def quantised_constants(model: Model, graph: Graph) -> dict[str, NDArray[Any]]:
    """Every constant of a graph that was captured from `model` and quantised: matrices as the graph's names and types say.

    Raises GraphInvalid where the model does not have them, CompileError for weights that are not finite.
    """
    arrays: dict[str, NDArray[Any]] = {}
    layouts = _layouts(model, graph)
    for name, layout in layouts.items():
        made = codes_of(model.tensors[name], layout)
        arrays |= {f"{name}.codes": made.codes, f"{name}.scales": made.scales}
        arrays |= {f"{name}.offsets": made.offsets} if made.offsets is not None else {}
    arrays |= {value.name: constant_of(model, value) for value in graph.constants if value.name not in arrays}
    return {value.name: arrays[value.name] for value in graph.constants}


def carried_of(model: Model, graph: Graph, constants: Arrays) -> tuple[Carried, ...]:
    """What became of each matrix, found by comparing all of its weights with the file's."""
    return tuple(_compared(model.tensors[name], layout, constants) for name, layout in _layouts(model, graph).items())


def _layouts(model: Model, graph: Graph) -> dict[str, Layout]:
    """How the graph holds each matrix of the model that it holds as codes."""
    values = {value.name: value for value in graph.constants}
    found: dict[str, Layout] = {}
    for name, tensor in model.tensors.items():
        if (codes := values.get(f"{name}.codes")) is None:
            continue
        parts = tuple(part for end in ("codes", "scales", "offsets") if (part := values.get(f"{name}.{end}")))
        fitting = [
            layout
            for layout in (CHANNEL, GROUP8, GROUP8_FROM, GROUP4)
            if not (layout.grouped and tensor.shape[-1] % GROUP) and parts == parts_of(Value(name, tensor.shape, "f32"), layout)
        ]
        if not fitting:
            shown = ", ".join(map(str, parts))
            raise GraphInvalid(f"{codes.name} cannot be made of {tensor.type_name} {list(tensor.shape)}: the graph has {shown}")
        found[name] = fitting[0]
    return found


def _compared(tensor: Tensor, layout: Layout, constants: Arrays) -> Carried:
    at, off, whole, equal = 0, 0.0, 0.0, True
    for part in slices(tensor):
        there = slice(at, at + part.shape[0])
        offsets = constants[f"{tensor.name}.offsets"][there] if layout.offsets else None
        found = Codes(constants[f"{tensor.name}.codes"][there], constants[f"{tensor.name}.scales"][there], offsets).values()
        wanted = dequantize(part)
        equal = equal and np.array_equal(found, wanted)
        off += float(np.square(found - wanted, dtype=np.float64).sum())
        whole += float(np.square(wanted, dtype=np.float64).sum())
        at = there.stop
    return Carried(tensor.name, tensor.type_name, layout.format, equal, (off / whole) ** 0.5 if whole else 0.0)
