"""llama.cpp as the peer of a benchmark, through the C functions that the `xllamacpp` wheel exports.

Parameter structs travel by value as opaque bytes that llama.cpp fills with its defaults; only the four u32 at the start of the context's
are written, and what came of them is read back through functions, so that a layout which moved is an error and not a wrong number.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np


class _Params(ctypes.Structure):
    _fields_ = (("content", ctypes.c_ubyte * 512),)  # larger than either struct


class _Batch(ctypes.Structure):
    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )


_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_silent = _LOG(lambda level, text, data: None)


class LlamaCpp:
    """One model and context of llama.cpp with `rows` sequences."""

    def __init__(self, model: Path, *, rows: int, context: int, threads: int) -> None:
        self.version = importlib.metadata.version("xllamacpp")
        lib = self._lib = ctypes.CDLL(str(library_path()))
        pointer, number = ctypes.c_void_p, ctypes.c_int32
        for name, result, arguments in (
            ("llama_model_default_params", _Params, []),
            ("llama_context_default_params", _Params, []),
            ("llama_model_load_from_file", pointer, [ctypes.c_char_p, _Params]),
            ("llama_init_from_model", pointer, [pointer, _Params]),
            ("llama_model_get_vocab", pointer, [pointer]),
            ("llama_vocab_n_tokens", number, [pointer]),
            ("llama_n_ctx", ctypes.c_uint32, [pointer]),
            ("llama_n_seq_max", ctypes.c_uint32, [pointer]),
            ("llama_set_n_threads", None, [pointer, number, number]),
            ("llama_get_memory", pointer, [pointer]),
            ("llama_memory_seq_cp", None, [pointer, number, number, number, number]),
            ("llama_memory_seq_rm", ctypes.c_bool, [pointer, number, number, number]),
            ("llama_batch_init", _Batch, [number, number, number]),
            ("llama_batch_free", None, [_Batch]),
            ("llama_decode", number, [pointer, _Batch]),
            ("llama_get_logits", ctypes.POINTER(ctypes.c_float), [pointer]),
            ("llama_print_system_info", ctypes.c_char_p, []),
            ("llama_free", None, [pointer]),
            ("llama_model_free", None, [pointer]),
        ):
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        lib.llama_log_set(_silent, None)
        lib.llama_backend_init()
        self._model = lib.llama_model_load_from_file(str(model).encode(), lib.llama_model_default_params())
        assert self._model, f"llama.cpp does not load {model}"
        self._vocab_size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self._model))
        params = lib.llama_context_default_params()
        assert struct.unpack_from("<4I", params.content) == (512, 2048, 512, 1), "llama_context_params has another layout than known"
        # each sequence has a stream of its own, of n_ctx / n_seq_max tokens in steps of 256
        struct.pack_into("<4I", params.content, 0, rows * ((context + 255) // 256 * 256), 2048, 512, rows)
        self._context = lib.llama_init_from_model(self._model, params)
        assert self._context, "llama.cpp makes no context"
        assert lib.llama_n_seq_max(self._context) == rows and lib.llama_n_ctx(self._context) >= rows * context
        lib.llama_set_n_threads(self._context, threads, threads)
        self._memory = lib.llama_get_memory(self._context)
        self._batch = lib.llama_batch_init(2048, 0, 1)
        self.features = lib.llama_print_system_info().decode()

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


def library_path() -> Path:
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the peer is missing: pip install xllamacpp")
    return next(Path(spec.submodule_search_locations[0]).glob("xllamacpp*.so"))
