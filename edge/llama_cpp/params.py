"""llama.cpp's structs, without a copy of their layouts that could drift from the installed library's.

Parameters travel by value as opaque bytes that the library fills with its own defaults. Only what is stable for years is written, each
write is preceded by a look at the default that stands there, and what came of it is read back through functions:

    context    u32 n_ctx = 512 | n_batch = 2048 | n_ubatch = 512 | n_seq_max = 1 | ... | bool embeddings = 0, offload_kqv = 1,
               no_perf = 1, op_offload = 1, swa_full = 1, kv_unified = 0 | ...

The booleans have moved between versions, so they are found by their defaults.
"""

from __future__ import annotations

import ctypes
import struct
from ctypes import POINTER, c_float, c_int8, c_int32, c_ubyte

_HEAD = struct.Struct("<4I")
_HEAD_DEFAULTS = (512, 2048, 512, 1)
_FLAGS = bytes((0, 1, 1, 1, 1, 0))
_FLAGS_FROM, _KV_UNIFIED = 80, 5
CONTEXT_STEP = 256  # llama.cpp rounds a context up to it


class Params(ctypes.Structure):
    """Any of the parameter structs: larger than each, so that the library reads and writes only its own."""

    _fields_ = (("content", c_ubyte * 512),)


class Batch(ctypes.Structure):
    """llama_batch: `n_tokens` tokens, each with a position, its sequences, and whether its logits are wanted."""

    _fields_ = (
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    )


def check_defaults(functions: ctypes.CDLL) -> str | None:
    """What of the context's parameters is not where it should be; None when all is."""
    defaults = functions.llama_context_default_params()
    head = _HEAD.unpack_from(defaults.content)
    if head != _HEAD_DEFAULTS:
        return f"llama_context_params begins with {head}, not {_HEAD_DEFAULTS}"
    return None if _flags_at(defaults) else "llama_context_params has no flags with the defaults known"


def check_batch(functions: ctypes.CDLL) -> str | None:
    """What of a batch is not where it should be: an empty one of 3 tokens has every array but the embeddings."""
    batch = functions.llama_batch_init(3, 0, 1)
    arrays = (batch.token, batch.pos, batch.n_seq_id, batch.seq_id, batch.logits)
    if batch.n_tokens != 0 or batch.embd or not all(arrays) or not all(batch.seq_id[i] for i in range(3)) or batch.seq_id[3]:
        return "llama_batch has other fields"
    functions.llama_batch_free(batch)
    return None


def context_params(functions: ctypes.CDLL, *, tokens: int, batch: int, sequences: int, unified: bool) -> Params:
    """Parameters of a context of `tokens` cells: shared by all sequences when `unified`, else each has its part of them."""
    params: Params = functions.llama_context_default_params()
    _HEAD.pack_into(params.content, 0, tokens, batch, min(batch, _HEAD_DEFAULTS[2]), sequences)
    params.content[_flags_at(params) + _KV_UNIFIED] = unified
    return params


def read_back(functions: ctypes.CDLL, context: int, *, tokens: int, batch: int, sequences: int, unified: bool) -> str | None:
    """What the context made of its parameters that is not what they said; None when it took them."""
    found = [getattr(functions, f"llama_{name}")(context) for name in ("n_ctx", "n_ctx_seq", "n_batch", "n_seq_max")]
    wanted = [tokens, tokens if unified else tokens // sequences, min(batch, tokens), sequences]
    return None if found == wanted else f"a context has (cells, per sequence, batch, sequences) = {found}, asked were {wanted}"


def _flags_at(params: Params) -> int:
    """Where the booleans begin, 0 when they are not found. A wrong place would show in what is read back."""
    content = bytes(params.content)
    places = (at for at in range(_FLAGS_FROM, 256, 4) if content[at : at + len(_FLAGS)] == _FLAGS)
    return next(places, 0)
