"""The reference: run a graph in NumPy, operation by operation, as semantics.py says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...shared_protocol.compile_errors import GraphInvalid
from ..cpu.blas import one_blas_thread
from .graph import Graph
from .op import Op
from .semantics import SEMANTICS, Array
from .value import ARRAYS, Value


def interpret(graph: Graph, constants: Mapping[str, Array], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs by name. Inputs are not changed: a state comes back as a new array. Raises GraphInvalid for arrays that are missing or
    of another shape or type than the graph's."""
    known = {value.name: _checked(value, constants) for value in graph.constants}
    known |= {value.name: _checked(value, inputs) for value in graph.inputs}
    kept = {value.name for value in (*graph.outputs, *graph.constants)}
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        _run(graph.ops, known, kept)
    return {value.name: known[value.name] for value in graph.outputs}


def _run(ops: Sequence[Op], known: dict[str, Array], kept: set[str]) -> None:
    """Add what the operations make to `known`, and take out what none of them needs any more."""
    last = {value.name: number for number, op in enumerate(ops) for value in (*op.outputs, *op.inputs)}
    for number, op in enumerate(ops):
        if op.kind == "fused":
            inside = {value.name: known[value.name] for value in op.inputs}
            _run(op.body, inside, {value.name for value in op.outputs})
            made = tuple(inside[value.name] for value in op.outputs)
        else:
            made = SEMANTICS[op.kind](op, *(known[value.name] for value in op.inputs))
        known.update({value.name: array for value, array in zip(op.outputs, made, strict=True)})
        for name in {value.name for value in (*op.inputs, *op.outputs)}:
            if last[name] == number and name not in kept:
                del known[name]


def _checked(value: Value, arrays: Mapping[str, Array]) -> Array:
    array = arrays.get(value.name)
    if array is None or array.shape != value.shape or array.dtype != ARRAYS[value.dtype]:
        found = "nothing" if array is None else f"{array.dtype} {list(array.shape)}"
        raise GraphInvalid(f"the graph needs {value}; there is {found}")
    return array
