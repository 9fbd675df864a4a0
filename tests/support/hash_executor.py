"""A model made of hashes over a paged cache: any wrong block, position or token gives other logits, and pure Python knows the right ones.

The cache holds one 64-bit number per slot, made of token and position; a row's logits depend on the numbers of all its positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hybrid.npu_backends.step import StepBatch, StepExecutor
from hybrid.shared_protocol.runtime import MemoryReport
from hybrid.shared_protocol.sampling import SamplingParams, sample

VOCAB = 48
EOS = 0


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    return x ^ (x >> 27)


def _logits(state: int) -> np.ndarray:
    return np.random.default_rng(state).standard_normal(VOCAB).astype(np.float32) * 2


class HashExecutor(StepExecutor):
    """`on_step` is called before each step, and may raise. Logits after the token `cursed` are NaN."""

    kernel_id = "hash-1"
    vocab_size = VOCAB
    hidden_size = 0

    def __init__(
        self,
        num_blocks: int = 65,
        block_size: int = 4,
        *,
        on_step: Callable[[StepBatch], None] = lambda batch: None,
        cursed: int | None = None,
    ) -> None:
        self.num_blocks, self.block_size = num_blocks, block_size
        self.steps: list[int] = []  # tokens of each step
        self._on_step = on_step
        self._cursed = cursed
        self._cache = [0xDEADBEEF] * (num_blocks * block_size)

    def step(self, batch: StepBatch, hidden: np.ndarray | None = None) -> np.ndarray:
        assert hidden is None, "hashes have none"
        for array in (batch.token_ids, batch.positions, batch.query_start, batch.block_tables, batch.logit_rows):
            assert array.dtype == np.int32 and array.flags.c_contiguous
        self.steps.append(len(batch.token_ids))
        self._on_step(batch)
        wanted, found = set(batch.logit_rows.tolist()), []
        for sequence, table in enumerate(batch.block_tables.tolist()):
            first, last = batch.query_start[sequence : sequence + 2].tolist()
            slots = [block * self.block_size + offset for block in table for offset in range(self.block_size)]
            for row in range(first, last):
                token, position = int(batch.token_ids[row]), int(batch.positions[row])
                assert slots[position] >= self.block_size, "the null block was written"
                self._cache[slots[position]] = _mix(token << 32 | position)
            for row in range(first, last):
                if row in wanted:
                    position = int(batch.positions[row])
                    logits = _logits(sum(self._cache[slot] for slot in slots[: position + 1]) & 2**64 - 1)
                    if batch.token_ids[row] == self._cursed:
                        logits[:] = np.nan
                    found.append(logits)
        return np.array(found, np.float32).reshape(len(found), VOCAB)

    def memory(self) -> MemoryReport:
        return MemoryReport(0, len(self._cache) * 8, 0, 0)

    def close(self) -> None:
        self._cache = []


def logits_after(ids: Sequence[int]) -> np.ndarray:
    """What any executor must give after `ids`."""
    return _logits(sum(_mix(token << 32 | position) for position, token in enumerate(ids)) & 2**64 - 1)


def continuation(prompt: Sequence[int], params: SamplingParams, seed: int, limit: int = 10**9) -> tuple[int, ...]:
    """What an engine must say: token by token, with nothing paged, batched or cut. End tokens are included."""
    ids = list(prompt)
    ends = {*params.stop_token_ids, *(() if params.ignore_eos else (EOS,))}
    while len(ids) - len(prompt) < (params.max_tokens or limit):
        ids.append(sample(logits_after(ids), params, seed, len(ids)))
        if ids[-1] in ends:
            break
    return tuple(ids[len(prompt) :])
