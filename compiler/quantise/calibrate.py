"""What given texts bring to the places where rows are rounded: the largest magnitude of every column, and one static scale from them.

A static scale costs no pass over the row on the chip. What is larger than all that was seen is cut off, so the texts matter, and rows of
very different size make it coarse: the gate says how much.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...npu_backends.ir.graph import Graph
from ...shared_protocol.compile_errors import CompileError
from ..capture.sequence import SequenceRun

Peaks = Mapping[str, NDArray[np.float32]]  # by the name of the rows: the largest magnitude of each of their columns


def observe(graph: Graph, constants: Mapping[str, NDArray[Any]], sequences: Sequence[Sequence[int]]) -> Peaks:
    """The peaks of all rows that enter a product, those of padding left out. `graph` is a float graph of any number of rows a run,
    with logits for one of them: only that one enters the output matrix.

    Raises CompileError without tokens, for sequences that do not fit the graph's cache with the padding of their last run, and for rows
    that are zero throughout or not finite.
    """
    if not sum(map(len, sequences)):
        raise CompileError("calibration takes tokens, and was given none")
    sizes = {value.name: value.shape[0] for value in graph.inputs}
    at_once = sizes["ids"]
    if sizes["logit_index"] != 1:
        raise CompileError(f"calibration takes a graph with logits for one row a run, {graph.name} has them for {sizes['logit_index']}")
    rows = {op.inputs[0].name: op.inputs[0] for op in graph.ops if op.kind == "linear"}
    made = {value.name for value in graph.outputs}
    watched = dataclasses.replace(graph, outputs=(*graph.outputs, *(value for value in rows.values() if value.name not in made)))
    peaks = {name: np.zeros(value.shape[1], np.float32) for name, value in rows.items()}
    for ids in sequences:
        run = SequenceRun(watched, constants)
        for at in range(0, len(ids), at_once):
            part = ids[at : at + at_once]
            outputs = run.feed(watched, part)
            peaks = {name: np.maximum(peak, np.abs(outputs[name][: len(part)]).max(axis=0)) for name, peak in peaks.items()}
    if silent := [name for name, peak in peaks.items() if not 0 < peak.max() < np.inf]:
        raise CompileError(f"calibration saw no finite number but 0 at {silent[0]}", hint="give it other texts, or a scale for every row")
    return peaks


def static_scales(peaks: Peaks) -> dict[str, float]:
    """One scale for each place, for quantise_graph."""
    return {name: float(peak.max()) / 127 for name, peak in peaks.items()}
