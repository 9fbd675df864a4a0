"""The native executor: repacks a model's weights once, then runs each step as one call into the C++ kernels."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...quant.repack import GROUP, PANEL
from ...shared_protocol.architecture import Architecture
from ...shared_protocol.errors import ConfigError, EngineFailed
from ...shared_protocol.model import Model
from ...shared_protocol.runtime import MemoryReport
from ..step import StepBatch, StepExecutor
from ..validate import check_batch, check_hidden
from .library import Batch, load
from .model_spec import model_spec
from .process import peak_bytes, usable_cpus
from .rotary import rotary_tables
from .weights import Weights

KEY_TILE = 16  # kKeyTile in kernels/cache.h
PAIRS = 8  # of inputs that turn together


class CpuExecutor(StepExecutor):
    """A model on the native kernels.

    Raises NativeUnavailable without the library, ModelFileError for a weight type that the kernels do not read, ConfigError for sizes of
    heads, rows or blocks that their loops do not take. `threads` None: one per CPU of this process's affinity mask.
    """

    def __init__(self, model: Model, *, num_blocks: int, block_size: int = 16, threads: int | None = None) -> None:
        self._handle: int | None = None
        self._lock = threading.Lock()  # a close waits for the step that runs
        self._process = os.getpid()
        self._native = load()
        self._arch = arch = model.architecture.for_context(num_blocks * block_size)
        _check_sizes(arch, block_size)
        self.kernel_id = self._native.kernel_id
        self.vocab_size, self.hidden_size, self.block_size, self.num_blocks = arch.vocab_size, arch.hidden_size, block_size, num_blocks
        self.threads = threads or usable_cpus()
        self._max_positions = arch.context_length
        self._weights = weights = Weights(model, self.threads, self._native)
        self._tables = rotary_tables(arch)
        spec = model_spec(arch, weights, self._tables, num_blocks=num_blocks, block_size=block_size, threads=self.threads)
        self._handle = self._native.library.hybrid_open(ctypes.byref(spec), self._native.isa.encode())
        if self._handle is None:
            raise EngineFailed(f"the kernels could not start: too little memory for {num_blocks} blocks, or for {self.threads} threads")

    def step(self, batch: StepBatch, hidden: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        check_batch(
            batch,
            vocab_size=self.vocab_size,
            num_blocks=self.num_blocks,
            block_size=self.block_size,
            max_positions=self._max_positions,
        )
        check_hidden(hidden, len(batch.logit_rows), self.hidden_size)
        logits = np.empty((len(batch.logit_rows), self.vocab_size), np.float32)
        sequences, max_blocks = batch.block_tables.shape
        arguments = Batch(
            tokens=len(batch.token_ids),
            sequences=sequences,
            max_blocks=max_blocks,
            logit_rows=len(batch.logit_rows),
            token_ids=batch.token_ids.ctypes.data,
            positions=batch.positions.ctypes.data,
            query_start=batch.query_start.ctypes.data,
            block_tables=batch.block_tables.ctypes.data,
            logit_index=batch.logit_rows.ctypes.data,
        )
        if self._forked:
            raise EngineFailed("this executor was opened before a fork: its threads are not in this process, open another one")
        with self._lock:
            if self._handle is None:
                raise EngineFailed("this executor is closed")
            for table in self._tables.values():
                table.fill(int(batch.positions.max()) + 1)
            states = None if hidden is None else hidden.ctypes.data
            failed = self._native.library.hybrid_step(self._handle, ctypes.byref(arguments), logits.ctypes.data, states)
        if failed:
            raise EngineFailed(f"too little memory for a step of {len(batch.token_ids)} tokens")
        return logits

    def memory(self) -> MemoryReport:
        kv = scratch = 0
        if not self._forked:
            with self._lock:
                if self._handle is not None:
                    native: Any = self._native.library.hybrid_memory(self._handle)
                    kv, scratch = native.kv, native.scratch
        return MemoryReport(
            weights=self._weights.nbytes + sum(table.nbytes for table in self._tables.values()), kv=kv, scratch=scratch, peak=peak_bytes()
        )

    def close(self) -> None:
        """Free weights, cache and threads; harmless when already closed."""
        if self._forked:  # there are no threads to join
            return
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                self._native.library.hybrid_close(handle)
                self._weights.drop()

    def __del__(self) -> None:
        self.close()

    @property
    def _forked(self) -> bool:
        """Asked before the lock is: if a thread held it at the fork, nobody in this process gives it back."""
        return os.getpid() != self._process


def _check_sizes(arch: Architecture, block_size: int) -> None:
    """What the kernels' loops take for granted."""
    if block_size % KEY_TILE or block_size < KEY_TILE:
        raise ConfigError(f"the native kernels need a block size that is a multiple of {KEY_TILE}, found {block_size}")
    rotaries = [arch.rotary] if arch.local_rotary is None else [arch.rotary, arch.local_rotary]
    pairs = {len(rotary.frequencies) for rotary in rotaries}
    for what, unit, found in (
        ("heads of a multiple of", PANEL, arch.head_dim),
        ("query heads that together have a multiple of", GROUP, arch.num_heads * arch.head_dim),
        ("a hidden size that is a multiple of", GROUP, arch.hidden_size),
        ("a feed-forward size that is a multiple of", GROUP, arch.ffn_size),
        *(("rotary pairs that are a multiple of", PAIRS, count) for count in pairs),
    ):
        if found % unit:
            raise ConfigError(
                f"the native kernels need {what} {unit}, found {found}",
                hint="the NumPy reference serves this model: HYBRID_BACKEND=reference",
            )
