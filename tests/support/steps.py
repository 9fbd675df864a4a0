"""Runs sequences through an executor in every shape that must not matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hybrid.npu_backends.step import StepBatch, StepExecutor


def batch_of(parts: Sequence[tuple[Sequence[int], int, Sequence[int]]], rows: Sequence[int] | None = None) -> StepBatch:
    """A step of (token ids, first position, block table) per sequence; logits for all rows, or those named."""
    ids = [token for tokens, _, _ in parts for token in tokens]
    positions = [first + i for tokens, first, _ in parts for i in range(len(tokens))]
    tables = np.zeros((len(parts), max(len(table) for _, _, table in parts)), np.int32)
    for line, (_, _, table) in zip(tables, parts, strict=True):
        line[: len(table)] = table
    return StepBatch(
        np.array(ids, np.int32),
        np.array(positions, np.int32),
        np.cumsum([0, *(len(tokens) for tokens, _, _ in parts)], dtype=np.int32),
        tables,
        np.arange(len(ids), dtype=np.int32) if rows is None else np.array(rows, np.int32),
    )


def run(executor: StepExecutor, ids: Sequence[int], table: Sequence[int], chunk: int | None = None) -> np.ndarray:
    """Logits of every position of one sequence, computed in chunks."""
    size = chunk or len(ids)
    return np.concatenate([executor.step(batch_of([(ids[at : at + size], at, table)])) for at in range(0, len(ids), size)])


def relative_errors(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Norm of the difference over the norm, per row."""
    return np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
