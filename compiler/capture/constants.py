"""The arrays behind a captured graph's constants: tensors of the model as float32, rotary tables, the embedding's scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...npu_backends.cpu.rotary import RotaryTable
from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.value import Value
from ...quant.formats import dequantize
from ...shared_protocol.architecture import Architecture, Rotary
from ...shared_protocol.compile_errors import GraphInvalid
from ...shared_protocol.model import Model

SCALE = "embedding_scale"  # f32 [hidden], all alike: what a row of the embedding is multiplied with
ROTARY, LOCAL = "rotary", "rotary.local"  # of layers with a window, where those turn otherwise


def rotary_names(architecture: Architecture, rotary: Rotary) -> tuple[str, str]:
    """The names of the constants with the cosines and the sines of one of the network's rotaries, f32 [context, pairs]."""
    prefix = ROTARY if rotary == architecture.rotary else LOCAL
    return f"{prefix}.cosines", f"{prefix}.sines"


def constants_of(model: Model, graph: Graph) -> dict[str, NDArray[Any]]:
    """Every constant of a graph that was captured from `model`. Raises GraphInvalid for one that the model does not have."""
    return {value.name: constant_of(model, value) for value in graph.constants}


def constant_of(model: Model, value: Value) -> NDArray[Any]:
    """One constant, by its name; its shape is that which the graph says."""
    if value.name == SCALE:
        array = np.full(value.shape, model.architecture.embedding_scale, np.float32)
    elif value.name.startswith((f"{ROTARY}.", f"{LOCAL}.")):
        array = _rotary(model.architecture, value)
    elif value.name in model.tensors:
        array = dequantize(model.tensors[value.name])
    else:
        raise GraphInvalid(f"{model.card.name} has nothing for the constant {value}", hint="the graph was captured from another model")
    if array.shape != value.shape or value.dtype != "f32":
        raise GraphInvalid(f"{model.card.name} has {value.name} as f32 {list(array.shape)}; the graph says {value}")
    return array


def _rotary(architecture: Architecture, value: Value) -> NDArray[np.float32]:
    """Cosines or sines of the positions 0 .. context - 1, to the bit as the executors rotate."""
    context, arch = value.shape[0], architecture.for_context(value.shape[0])
    rotary = arch.local_rotary if value.name.startswith(f"{LOCAL}.") else arch.rotary
    if rotary is None:
        raise GraphInvalid(f"the model has no second rotary for the constant {value}")
    table = RotaryTable(context, rotary)
    table.fill(context)
    pairs = table.array if rotary.interleaved else table.array.transpose(0, 2, 1)  # [position, pair, (cos, sin)]
    return np.ascontiguousarray(pairs[:context, :, int(value.name.endswith(".sines"))])
