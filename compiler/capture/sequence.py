"""One sequence of tokens through captured graphs in the interpreter: the caches handed on from run to run, as a runtime does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.interpret import interpret
from ...npu_backends.ir.value import ARRAYS
from ...shared_protocol.compile_errors import CompileError

PADDING = 0  # the id in rows without a token


class SequenceRun:
    """Graphs that share constants and states may take turns: chunks by one, steps by another."""

    def __init__(self, graph: Graph, constants: Mapping[str, NDArray[Any]]) -> None:
        before = {name for name, _ in graph.states}
        self.constants = constants
        self.states: dict[str, NDArray[Any]] = {
            value.name: np.zeros(value.shape, ARRAYS[value.dtype]) for value in graph.inputs if value.name in before
        }
        self.length = 0  # tokens so far

    def feed(self, graph: Graph, ids: Sequence[int]) -> dict[str, NDArray[Any]]:
        """The outputs after 1 to `rows` tokens. `logits` are those of the last logit_rows rows with a token, the last one last; where
        there are fewer tokens, the first one's stand in front. Raises CompileError where tokens and padding go beyond the cache."""
        sizes = {value.name: value.shape[0] for value in graph.inputs}
        rows, wanted = sizes["ids"], sizes["logit_index"]
        context = next(value.shape[1] for value in graph.inputs if value.name in self.states)
        if not 0 < len(ids) <= rows or self.length + rows > context:
            raise CompileError(f"{len(ids)} tokens after {self.length} do not fit {graph.name}: {rows} rows a run, {context} positions")
        inputs: dict[str, NDArray[Any]] = {
            "ids": np.array([*ids, *[PADDING] * (rows - len(ids))], np.int32),
            "position": np.array([self.length], np.int32),
            "logit_index": np.maximum(np.arange(len(ids) - wanted, len(ids)), 0).astype(np.int32),
        }
        outputs = interpret(graph, self.constants, {**inputs, **self.states})
        self.states = {before: outputs[after] for before, after in graph.states}
        self.length += len(ids)
        return outputs
