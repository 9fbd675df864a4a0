"""Checks of a step's inputs, before an executor that trusts every index runs on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.errors import EngineFailed
from .step import StepBatch


def check_batch(batch: StepBatch, *, vocab_size: int, num_blocks: int, block_size: int, max_positions: int) -> None:
    """Raise EngineFailed, naming the array, unless every index of `batch` lies inside the model and its cache."""
    for name in ("token_ids", "positions", "query_start", "block_tables", "logit_rows"):
        array, dims = getattr(batch, name), 2 if name == "block_tables" else 1
        good = isinstance(array, np.ndarray) and array.dtype == np.int32 and array.ndim == dims and array.flags.c_contiguous
        _require(good, f"{name} must be a C-contiguous int32 array of {dims} dimensions")
    tokens, sequences = len(batch.token_ids), len(batch.block_tables)
    _require(tokens >= 1, "no tokens")
    _require(len(batch.positions) == tokens, f"{len(batch.positions)} positions for {tokens} tokens")
    start = batch.query_start
    _require(len(start) == sequences + 1 and start[0] == 0 and start[-1] == tokens, f"query_start must run from 0 to {tokens}")
    lengths = np.diff(start)
    _require(bool((lengths >= 0).all()), "query_start must ascend")
    limit = min(max_positions, batch.block_tables.shape[1] * block_size)
    _within("token_ids", batch.token_ids, vocab_size)
    _within("positions", batch.positions, limit)
    _within("block_tables", batch.block_tables, num_blocks)
    if len(batch.logit_rows):
        _within("logit_rows", batch.logit_rows, tokens)
        _require(bool((np.diff(batch.logit_rows) > 0).all()), "logit_rows must ascend")
    steps = np.diff(batch.positions)
    inside = np.ones(max(tokens - 1, 0), bool)
    inside[start[1:-1][(start[1:-1] > 0) & (start[1:-1] < tokens)] - 1] = False
    _require(bool((steps[inside] == 1).all()), "positions of one sequence must be consecutive")


def check_hidden(hidden: NDArray[np.float32] | None, rows: int, size: int) -> None:
    """Raise EngineFailed unless the hidden states of `rows` rows can be written there; None: nobody asks for them."""
    if hidden is not None:
        good = isinstance(hidden, np.ndarray) and hidden.dtype == np.float32 and hidden.shape == (rows, size)
        _require(
            good and hidden.flags.c_contiguous and hidden.flags.writeable, f"hidden must be writable C-contiguous float32 [{rows}, {size}]"
        )


def _within(name: str, values: np.ndarray, limit: int) -> None:
    low, high = values.min(initial=0), values.max(initial=0)
    _require(low >= 0 and high < limit, f"{name} must lie in 0..{limit - 1}, found {low}..{high}")


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise EngineFailed(f"a step was refused: {problem}")
