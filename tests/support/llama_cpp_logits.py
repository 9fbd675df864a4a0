"""llama.cpp's own forward as the oracle: logits of every position of a sequence, through the `xllamacpp` wheel's C functions.

Parameters are bytes that llama.cpp fills with its defaults. A few fields are set by their offset; each must first hold the default that
it is known to have, so an installed version with another layout is told apart instead of being fed nonsense.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hybrid.tests.support.llama_cpp import _Params, _silent

# field of llama_context_params -> (offset, default)
FIELDS = {
    "n_ctx": (0, 512),
    "n_batch": (4, 2048),
    "n_ubatch": (8, 512),
    "n_threads": (28, 4),
    "n_threads_batch": (32, 4),
    "flash_attn": (52, -1),
    "type_k": (104, 1),
    "type_v": (108, 1),
}
F32, F16 = 0, 1


class _Batch(ctypes.Structure):
    """llama_batch."""

    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.c_void_p),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )


class LayoutChanged(AssertionError):
    """The installed llama.cpp has other parameters than this oracle knows."""


def llama_cpp_logits(library: Path, model: Path, ids: Sequence[int], *, context: int = 512, kv_type: int = F32) -> np.ndarray:
    """Logits float32 [tokens, vocabulary] of one batch, without flash attention, one thread."""
    lib = _library(library)
    handle = lib.llama_model_load_from_file(str(model).encode(), lib.llama_model_default_params())
    assert handle, f"llama.cpp does not load {model}"
    params = lib.llama_context_default_params()
    changes = {"n_ctx": context, "n_batch": context, "n_ubatch": context, "n_threads": 1, "n_threads_batch": 1}
    _set(params, **changes, flash_attn=0, type_k=kv_type, type_v=kv_type)
    context_handle = lib.llama_init_from_model(handle, params)
    assert context_handle, f"llama.cpp makes no context for {model}"
    batch = lib.llama_batch_init(len(ids), 0, 1)
    for index, token in enumerate(ids):
        batch.token[index], batch.pos[index], batch.n_seq_id[index], batch.logits[index] = token, index, 1, 1
        batch.seq_id[index][0] = 0
    batch.n_tokens = len(ids)
    assert lib.llama_decode(context_handle, batch) == 0
    vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(handle))
    logits = np.ctypeslib.as_array(lib.llama_get_logits(context_handle), (len(ids), vocab)).copy()
    lib.llama_batch_free(batch)
    lib.llama_free(context_handle)
    lib.llama_model_free(handle)
    return logits


def _set(params: _Params, **changes: int) -> None:
    at = ctypes.addressof(params)
    for name, value in changes.items():
        offset, default = FIELDS[name]
        field = ctypes.c_int32.from_address(at + offset)
        if field.value != default:
            raise LayoutChanged(f"llama_context_params has {field.value} where {name} had {default}")
        field.value = value


def _library(path: Path) -> ctypes.CDLL:
    lib = ctypes.CDLL(str(path))
    lib.llama_model_default_params.restype = lib.llama_context_default_params.restype = _Params
    lib.llama_model_load_from_file.restype = lib.llama_init_from_model.restype = ctypes.c_void_p
    lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, _Params]
    lib.llama_init_from_model.argtypes = [ctypes.c_void_p, _Params]
    lib.llama_batch_init.restype = _Batch
    lib.llama_batch_init.argtypes = [ctypes.c_int32] * 3
    lib.llama_batch_free.argtypes = [_Batch]
    lib.llama_decode.argtypes = [ctypes.c_void_p, _Batch]
    lib.llama_decode.restype = ctypes.c_int32
    lib.llama_get_logits.restype = ctypes.POINTER(ctypes.c_float)
    lib.llama_model_get_vocab.restype = ctypes.c_void_p
    for function in (lib.llama_get_logits, lib.llama_free, lib.llama_model_free, lib.llama_model_get_vocab, lib.llama_vocab_n_tokens):
        function.argtypes = [ctypes.c_void_p]
    lib.llama_log_set(_silent, None)
    lib.llama_backend_init()
    return lib
