"""llama.cpp as the peer of a benchmark, through the binding that the device's runtime uses."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hybrid.edge.llama_cpp.library import load_library
from hybrid.edge.llama_cpp.params import CONTEXT_STEP, context_params, read_back

BATCH = 2048  # tokens of one decode


class LlamaCpp:
    """One model and context of llama.cpp with `rows` sequences."""

    def __init__(self, model: Path, *, rows: int, context: int, threads: int) -> None:
        library = load_library()
        lib = self._lib = library.functions
        self.version, self.features = library.found.version, library.features
        self._model = lib.llama_model_load_from_file(str(model).encode(), lib.llama_model_default_params())
        assert self._model, f"llama.cpp does not load {model}"
        self._vocab_size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self._model))
        # each sequence has a stream of its own
        tokens = rows * ((context + CONTEXT_STEP - 1) // CONTEXT_STEP * CONTEXT_STEP)
        params = context_params(lib, tokens=tokens, batch=BATCH, sequences=rows, unified=False)
        self._context = lib.llama_init_from_model(self._model, params)
        assert self._context, "llama.cpp makes no context"
        drift = read_back(lib, self._context, tokens=tokens, batch=BATCH, sequences=rows, unified=False)
        assert drift is None, drift
        lib.llama_set_n_threads(self._context, threads, threads)
        self._memory = lib.llama_get_memory(self._context)
        self._batch = lib.llama_batch_init(BATCH, 0, 1)

    def fill(self, tokens: Sequence[Sequence[int]], first: int, every_logit: bool = True) -> None:
        """Lay tokens[s] of every sequence s, from position `first` on, into the batch; logits for all of them, or for each last one."""
        batch, at = self._batch, 0
        for sequence, ids in enumerate(tokens):
            for offset, token in enumerate(ids):
                batch.token[at], batch.pos[at], batch.n_seq_id[at] = token, first + offset, 1
                batch.logits[at] = every_logit or offset == len(ids) - 1
                batch.seq_id[at][0] = sequence
                at += 1
        batch.n_tokens = at
        self._outputs = sum(batch.logits[i] for i in range(at))

    def decode(self) -> ctypes.Array[ctypes.c_float]:
        """Compute what `fill` laid; wait for the logits, [tokens * vocabulary]."""
        status = self._lib.llama_decode(self._context, self._batch)
        assert status == 0, f"llama_decode: {status}"
        return self._lib.llama_get_logits(self._context)

    def logits(self) -> np.ndarray:
        """Logits of the last decode, float32 [tokens that asked for them, vocabulary]."""
        shape = (self._outputs, self._vocab_size)
        return np.ctypeslib.as_array(self._lib.llama_get_logits(self._context), shape).copy()

    def share(self, rows: int) -> None:
        """Give sequences 1 .. rows - 1 what sequence 0 holds."""
        for sequence in range(1, rows):
            self._lib.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)

    def truncate(self, rows: int, length: int) -> None:
        for sequence in range(rows):
            assert self._lib.llama_memory_seq_rm(self._memory, sequence, length, -1)

    def close(self) -> None:
        self._lib.llama_batch_free(self._batch)
        self._lib.llama_free(self._context)
        self._lib.llama_model_free(self._model)
