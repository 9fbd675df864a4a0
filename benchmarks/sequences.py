"""The same tokens for both engines: `rows` sequences that hold `context` tokens each, and `tokens` more of every one to compute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hybrid.npu_backends.cpu.executor import CpuExecutor
from hybrid.npu_backends.step import StepBatch
from hybrid.shared_protocol.model import Model
from peer_llama_cpp import LlamaCpp

BLOCK = 16


@dataclass(frozen=True, slots=True)
class Work:
    """`logits`: of every new token, else of the last one of each sequence only, as a prompt asks for."""

    rows: int
    context: int
    tokens: int = 1
    logits: bool = True


class Ours:
    """Our kernels; `decode` computes the same tokens again and again."""

    def __init__(self, model: Model, work: Work, threads: int) -> None:
        blocks = -(-(work.context + work.tokens) // BLOCK)
        self._executor = CpuExecutor(model, num_blocks=1 + work.rows * blocks, block_size=BLOCK, threads=threads)
        self.kernel_id = self._executor.kernel_id
        tables = np.arange(1, 1 + work.rows * blocks, dtype=np.int32).reshape(work.rows, blocks)
        for line in tables if work.context else ():
            self._executor.step(step_batch([_prompt(model, work)], 0, line[None], np.empty(0, np.int32)))
        wanted = np.arange(work.rows * work.tokens, dtype=np.int32)
        self._batch = step_batch(
            _nexts(model, work), work.context, tables, wanted if work.logits else wanted[work.tokens - 1 :: work.tokens]
        )
        self.logits = np.empty((0, 0), np.float32)

    def decode(self) -> None:
        self.logits = self._executor.step(self._batch)

    def back(self) -> None:
        """Positions are given anew each time: nothing to undo."""

    def close(self) -> None:
        self._executor.close()


class Theirs:
    """llama.cpp on a file of its own choice."""

    def __init__(self, model: Model, path: Path, work: Work, threads: int) -> None:
        self.peer = LlamaCpp(path, rows=work.rows, context=work.context + work.tokens, threads=threads)
        self._work = work
        if work.context:
            self.peer.fill([_prompt(model, work)], 0)
            self.peer.decode()
            self.peer.share(work.rows)
        self.peer.fill(_nexts(model, work), work.context, every_logit=work.logits)
        self.logits = np.empty((0, 0), np.float32)

    def decode(self) -> None:
        self.peer.decode()

    def back(self) -> None:
        self.logits = self.peer.logits()
        self.peer.truncate(self._work.rows, self._work.context)

    def close(self) -> None:
        self.peer.close()


def step_batch(tokens: list[list[int]], first: int, tables: np.ndarray, logit_rows: np.ndarray) -> StepBatch:
    """Sequences of equal length, each from position `first` on."""
    length = len(tokens[0])
    return StepBatch(
        np.array([token for ids in tokens for token in ids], np.int32),
        np.tile(np.arange(first, first + length, dtype=np.int32), len(tokens)),
        np.arange(0, len(tokens) * length + 1, length, dtype=np.int32),
        np.ascontiguousarray(tables),
        np.ascontiguousarray(logit_rows),
    )


def _prompt(model: Model, work: Work) -> list[int]:
    return [(i * 7919 + 11) % model.architecture.vocab_size for i in range(work.context)]


def _nexts(model: Model, work: Work) -> list[list[int]]:
    return [[(row * 104729 + i * 15485863 + 5) % model.architecture.vocab_size for i in range(work.tokens)] for row in range(work.rows)]
