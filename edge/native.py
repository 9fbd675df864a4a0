"""The default device runtime: our own kernels, one sequence, nothing extra to install."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..npu_backends.cpu.process import usable_cpus
from ..npu_backends.cpu.select import open_executor
from ..npu_backends.step import StepBatch
from ..quant.at_load import Quantise, quantised
from ..shared_protocol.errors import EngineFailed, RuntimeClosed
from ..shared_protocol.model import Model
from ..shared_protocol.runtime import EdgeRuntime, MemoryReport
from .checks import check_cancelled, check_length, checked_ids, chosen_context
from .cost_curve import CostCurve, key_of

BLOCK_SIZE = 16
CHUNK = 32  # tokens per step: a cancelled prompt ends after at most so many more


class NativeRuntime(EdgeRuntime):
    """A `StepExecutor` with one sequence and an identity block table. Offers HiddenStates.

    block table   1  2  3  4 ...          block 0 is the null block
    positions     0..15, 16..31, ...      slot = 16 + position

    Every `extend` holds all of its ids or, when it raises, none of them. Results do not depend on how a sequence was cut into calls.
    """

    def __init__(
        self,
        model: Model,
        threads: int | None = None,
        backend: Literal["auto", "native", "reference"] = "auto",
        context: int | None = None,
        quantise: Quantise | None = None,
        clock: Callable[[], float] = time.perf_counter,
        curves: Path | None = None,
    ) -> None:
        model = quantised(model, quantise)
        self.card = model.card
        self.can_truncate = True
        self.context = chosen_context(context, model.card)
        blocks = -(-self.context // BLOCK_SIZE)
        model = model.for_context(self.context)
        self._executor = open_executor(model, num_blocks=1 + blocks, block_size=BLOCK_SIZE, threads=threads, backend=backend)
        self.kernel_id = self._executor.kernel_id
        self._table = np.arange(1, 1 + blocks, dtype=np.int32)[None, :]
        self._vocab, self.hidden_size = self._executor.vocab_size, self._executor.hidden_size
        self._length = 0
        self._cancelled = threading.Event()
        self._closed = False
        self._curve = CostCurve(
            key_of(model.card.file_hash, "native", self.kernel_id, threads or usable_cpus()), clock=clock, folder=curves
        )

    @property
    def length(self) -> int:
        return self._length

    def extend(self, ids: Sequence[int], rows: int = 1) -> NDArray[np.float32]:
        return self._extend(ids, rows, wanted=False)[0]

    def extend_with_hidden(self, ids: Sequence[int], rows: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        logits, hidden = self._extend(ids, rows, wanted=True)
        assert hidden is not None
        return logits, hidden

    def _extend(self, ids: Sequence[int], rows: int, *, wanted: bool) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Logits, and the hidden states [rows, hidden_size] where they are `wanted`."""
        self._check_open()
        tokens = checked_ids(ids, rows, held=self._length, context=self.context, vocab=self._vocab)
        hidden = np.empty((rows, self.hidden_size), dtype=np.float32) if wanted else None
        start = self._length
        first_row = len(ids) - rows
        parts = [np.empty((0, self._vocab), dtype=np.float32)]
        try:
            check_cancelled(self._cancelled)
            for at in range(0, len(ids), CHUNK):
                before, chunk = max(0, at - first_row), tokens[at : at + CHUNK]  # rows of earlier chunks
                here = None if hidden is None else hidden[before : max(0, at + len(chunk) - first_row)]
                parts.append(self._step(chunk, first_row - at, here))
                check_cancelled(self._cancelled)
        except BaseException as error:
            self._length = start
            if self._closed and isinstance(error, EngineFailed):
                raise RuntimeClosed from None
            raise
        return parts[-1] if len(parts) == 2 else np.concatenate(parts), hidden

    def truncate(self, length: int) -> None:
        self._check_open()
        check_length(length, self._length)
        self._length = length

    def cost_curve(self, k_max: int) -> NDArray[np.float64]:
        """Milliseconds of a k-token `extend` with logits for every row, k = 0..k_max, at the length held when it is first measured.

        The sequence is as before afterwards. Raises ContextOverflow without room for k_max more tokens.
        """
        self._check_open()
        start = self._length
        return self._curve.upto(k_max, lambda k: self.extend([0] * k, rows=k), lambda: self.truncate(start))

    def memory(self) -> MemoryReport:
        return self._executor.memory()

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self._closed, self._length = True, 0
        self._executor.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeClosed

    def _step(self, tokens: NDArray[np.int32], first_row: int, hidden: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """One chunk at the end of the sequence; logits of its tokens from index `first_row` on (which may lie past it, or before 0), and
        their states in `hidden`."""
        count = len(tokens)
        batch = StepBatch(
            token_ids=tokens,
            positions=np.arange(self._length, self._length + count, dtype=np.int32),
            query_start=np.array([0, count], dtype=np.int32),
            block_tables=self._table,
            logit_rows=np.arange(max(0, first_row), count, dtype=np.int32),
        )
        logits = self._executor.step(batch, hidden)
        self._length += count
        return logits
