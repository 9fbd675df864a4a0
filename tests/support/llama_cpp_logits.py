"""llama.cpp's own forward as the oracle: logits of every position of a sequence."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hybrid.edge.llama_cpp.library import load_library
from hybrid.edge.llama_cpp.params import Params, context_params

# fields of llama_context_params behind those that the runtime sets: offset in bytes, and the default that stands there
FIELDS = {"n_threads": (28, 4), "n_threads_batch": (32, 4), "flash_attn": (52, -1), "type_k": (104, 1), "type_v": (108, 1)}
F32, F16 = 0, 1


def exact_parameters_are_known() -> bool:
    """Whether the installed llama.cpp keeps these fields where we know them; else nothing may be written there."""
    params = load_library().functions.llama_context_default_params()
    return all(_field(params, offset).value == default for offset, default in FIELDS.values())


def llama_cpp_logits(model: Path, ids: Sequence[int], *, context: int = 512, kv_type: int = F32, threads: int = 1) -> np.ndarray:
    """Logits float32 [tokens, vocabulary] of one batch, without flash attention. `context` is rounded up to a multiple of 256."""
    assert exact_parameters_are_known()
    lib = load_library().functions
    handle = lib.llama_model_load_from_file(str(model).encode(), lib.llama_model_default_params())
    assert handle, f"llama.cpp does not load {model}"
    params = context_params(lib, tokens=context, batch=context, sequences=1, unified=True)
    changes = {"n_threads": threads, "n_threads_batch": threads, "flash_attn": 0, "type_k": kv_type, "type_v": kv_type}
    for name, value in changes.items():
        _field(params, FIELDS[name][0]).value = value
    opened = lib.llama_init_from_model(handle, params)
    assert opened, f"llama.cpp makes no context for {model}"
    batch = lib.llama_batch_init(len(ids), 0, 1)
    for index, token in enumerate(ids):
        batch.token[index], batch.pos[index], batch.n_seq_id[index], batch.logits[index] = token, index, 1, 1
        batch.seq_id[index][0] = 0
    batch.n_tokens = len(ids)
    assert lib.llama_decode(opened, batch) == 0
    vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(handle))
    logits = np.ctypeslib.as_array(lib.llama_get_logits(opened), (len(ids), vocab)).copy()
    lib.llama_batch_free(batch)
    lib.llama_free(opened)
    lib.llama_model_free(handle)
    return logits


def _field(params: Params, offset: int) -> ctypes.c_int32:
    return ctypes.c_int32.from_buffer(params, offset)
