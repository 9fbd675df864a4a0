"""The one call by which engines and runtimes compute: a whole model step on a ragged batch.

tokens      a b c | d | e f g h        three sequences, eight tokens
query_start 0      3   4         8     tokens of sequence s: query_start[s] .. query_start[s + 1]
positions   5 6 7 | 31| 0 1 2 3        absolute, consecutive inside a sequence
tables      [s, position // block_size] -> block; slot = block * block_size + position % block_size
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.runtime import MemoryReport


@dataclass(frozen=True, slots=True)
class StepBatch:
    """Inputs of one step; all arrays are C-contiguous int32.

    The K and V of every token are written to the paged cache at its position before attention reads them.
    A sequence's earlier positions must have been computed in earlier steps into the same blocks.
    """

    token_ids: NDArray[np.int32]  # [tokens]
    positions: NDArray[np.int32]  # [tokens]
    query_start: NDArray[np.int32]  # [sequences + 1]
    block_tables: NDArray[np.int32]  # [sequences, max_blocks], padded with 0 (the null block)
    logit_rows: NDArray[np.int32]  # [rows], ascending indices into the tokens; only these get logits


class StepExecutor(Protocol):
    """A loaded model with its paged KV cache. `step` is called from one thread at a time."""

    kernel_id: str  # ISA and version; equality of results is promised within one kernel id
    vocab_size: int
    hidden_size: int
    block_size: int  # tokens per block
    num_blocks: int  # block 0, the null block, included

    def step(self, batch: StepBatch, hidden: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """Run the model; return logits float32 [rows, vocab]. A row's result depends on its own sequence only.

        `hidden`: C-contiguous float32 [rows, hidden_size], filled with what the head multiplies: the hidden state of the same rows after
        the final norm, before a kernel rounds it. Asking for it changes no bit of the logits.
        """
        ...

    def memory(self) -> MemoryReport: ...

    def close(self) -> None: ...
