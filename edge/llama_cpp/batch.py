"""What one decode of llama.cpp is given."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .params import Batch


@dataclass(frozen=True, slots=True)
class Feed:
    """Tokens at the end of one sequence; logits are wanted from index `first_row` on."""

    sequence: int
    start: int
    ids: NDArray[np.int32]
    first_row: int


class BatchArrays:
    """A batch over NumPy arrays: filled by slices, not token by token."""

    def __init__(self, size: int) -> None:
        self._token, self._pos, self._seq = (np.zeros(size, np.int32) for _ in range(3))
        self._n_seq = np.ones(size, np.int32)
        self._wanted = np.zeros(size, np.int8)
        # every token is of one sequence: seq_id[i] points at _seq[i]
        self._seq_pointers = np.arange(size, dtype=np.uintp) * 4 + self._seq.ctypes.data

    def lay(self, feeds: Sequence[Feed]) -> tuple[int, int]:
        """Fill in; return (tokens, tokens whose logits are wanted)."""
        at = 0
        for feed in feeds:
            here = slice(at, at + len(feed.ids))
            self._token[here], self._seq[here] = feed.ids, feed.sequence
            self._pos[here] = np.arange(feed.start, feed.start + len(feed.ids))
            self._wanted[here] = np.arange(len(feed.ids)) >= feed.first_row
            at = here.stop
        return at, int(self._wanted[:at].sum())

    def batch(self, count: int) -> Batch:
        def pointer(array: NDArray[np.generic], kind: type) -> object:
            return array.ctypes.data_as(ctypes.POINTER(kind))

        return Batch(
            n_tokens=count,
            token=pointer(self._token, ctypes.c_int32),
            pos=pointer(self._pos, ctypes.c_int32),
            n_seq_id=pointer(self._n_seq, ctypes.c_int32),
            seq_id=pointer(self._seq_pointers, ctypes.POINTER(ctypes.c_int32)),
            logits=pointer(self._wanted, ctypes.c_int8),
        )
