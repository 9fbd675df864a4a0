"""One llama.cpp model with one context, in which several sequences live: all that touches the library's memory.

cells     shared by the sequences: what one was forked from is held once
batch     up to BATCH tokens of any sequences; logits come back for those that ask, in the batch's order
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...shared_protocol.errors import Cancelled, EngineFailed, ModelFileError, RuntimeClosed
from .batch import BatchArrays, Feed
from .library import Library, LlamaCppUnavailable, load_library, take_log
from .params import CONTEXT_STEP, context_params, read_back

BATCH = 512  # tokens of one decode
_ABORTED = 2
_SIZE = re.compile(r"(KV|compute|output) buffer size = +([0-9.]+) MiB")


class LlamaContext:
    """Not thread-safe but for `cancel` and `close`, which waits for the decode that runs."""

    def __init__(self, path: Path, *, vocab_size: int, context: int, sequences: int, threads: int) -> None:
        """Raises LlamaCppUnavailable, ModelFileError when llama.cpp does not read the file, EngineFailed for too little memory."""
        self._model = self._context = None
        if path.is_dir():
            raise ModelFileError(
                f"llama.cpp reads GGUF files, and {path.name} is a folder", hint="the native runtime reads it: --runtime native"
            )
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.library: Library = load_library()
        lib = self._lib = self.library.functions
        tokens = sequences * -(-context // CONTEXT_STEP) * CONTEXT_STEP
        settings = {"tokens": tokens, "batch": min(BATCH, tokens), "sequences": sequences, "unified": True}
        _quiet()
        self._model = lib.llama_model_load_from_file(os.fsencode(path), lib.llama_model_default_params())
        if not self._model:
            raise ModelFileError(f"llama.cpp does not load {path.name}: {_reason()}", hint="the native runtime may: --runtime native")
        if lib.llama_model_has_encoder(self._model):
            raise self._failed(ModelFileError(f"{path.name} has an encoder, which is not supported"))
        self.vocab_size = vocab_size
        found = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self._model))
        if found != vocab_size:
            raise self._failed(ModelFileError(f"llama.cpp reads {found} tokens in {path.name}, we read {vocab_size}"))
        # what is recurrent keeps no past to go back to; sliding windows do, since llama.cpp holds all of them by default
        self.can_truncate = not (lib.llama_model_is_recurrent(self._model) or lib.llama_model_is_hybrid(self._model))
        self._context = lib.llama_init_from_model(self._model, context_params(lib, **settings))  # type: ignore[arg-type]
        if not self._context:
            raise self._failed(EngineFailed(f"llama.cpp makes no context of {tokens} tokens: {_reason()}"))
        self._memory = lib.llama_get_memory(self._context)
        self._batch_size = int(settings["batch"])
        self._arrays = BatchArrays(self._batch_size)
        lib.llama_set_n_threads(self._context, threads, threads)
        self._stop = (ctypes.c_char * 2)()
        lib.llama_set_abort_callback(self._context, _first_byte(), ctypes.addressof(self._stop))
        drift = read_back(lib, self._context, **settings) or self._try_out()  # type: ignore[arg-type]
        if drift:
            origin = self.library.found
            raise self._failed(LlamaCppUnavailable(f"{origin.origin} {origin.version} is not as known: {drift}"))
        self.weights = int(lib.llama_model_size(self._model))
        self.kv, self.scratch = _buffers()

    def decode(self, feeds: Sequence[Feed]) -> NDArray[np.float32]:
        """Append all of `feeds`, at most BATCH tokens together; logits float32 [wanted rows, vocab]. Raises Cancelled, EngineFailed:
        then what the sequences hold is to be put right by `forget`."""
        count, wanted = self._arrays.lay(feeds)
        with self._open():
            self._check_stop()
            status = self._lib.llama_decode(self._context, self._arrays.batch(count))
            if status == _ABORTED:
                self._check_stop()
            if status != 0:
                raise EngineFailed(f"llama.cpp could not compute {count} tokens (status {status}): {_reason()}")
            if not wanted:
                return np.empty((0, self.vocab_size), np.float32)
            logits = self._lib.llama_get_logits(self._context)
            return np.ctypeslib.as_array(logits, (wanted, self.vocab_size)).copy()

    @property
    def batch_size(self) -> int:
        return self._batch_size

    def forget(self, sequence: int, length: int) -> None:
        """Forget all of a sequence after `length` tokens. Raises EngineFailed when what it is to go back to is gone."""
        with self._open():
            done = self._lib.llama_memory_seq_rm(self._memory, sequence, length, -1)
            if not done or (length > 0 and self._lib.llama_memory_seq_pos_min(self._memory, sequence) < 0):
                raise EngineFailed(f"llama.cpp cannot go back to {length} tokens")

    def holds_all(self, sequence: int) -> bool:
        """Whether every layer holds a sequence from its first token on; after `set_state`, those with a window hold only that."""
        with self._open():
            return bool(self._lib.llama_memory_seq_pos_min(self._memory, sequence) <= 0)

    def copy(self, source: int, target: int) -> None:
        with self._open():
            self._lib.llama_memory_seq_rm(self._memory, target, -1, -1)
            self._lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def state(self, sequence: int) -> bytes:
        """What a sequence holds, in llama.cpp's own form."""
        with self._open():
            size = self._lib.llama_state_seq_get_size(self._context, sequence)
            state = ctypes.create_string_buffer(size)
            written = self._lib.llama_state_seq_get_data(self._context, state, size, sequence)
            if written != size:
                raise EngineFailed(f"llama.cpp wrote {written} of {size} bytes of its state")
            return state.raw

    def set_state(self, sequence: int, state: bytes) -> bool:
        """Replace what a sequence holds; False when llama.cpp refuses it: the sequence is empty then."""
        with self._open():
            self._lib.llama_memory_seq_rm(self._memory, sequence, -1, -1)
            taken: int = self._lib.llama_state_seq_set_data(self._context, state, len(state), sequence)
            if taken != len(state):
                self._lib.llama_memory_seq_rm(self._memory, sequence, -1, -1)
            return taken == len(state)

    def cancel(self) -> None:
        """Make the running or next decode raise Cancelled."""
        self._stop[0] = b"\x01"

    def check_cancelled(self) -> None:
        with self._open():
            self._check_stop()

    def close(self) -> None:
        """Harmless when already closed."""
        if self._forked:
            return  # the parent's threads are not here to be joined
        with self._lock:
            context, self._context = self._context, None
            model, self._model = self._model, None
            if context is not None:
                self._lib.llama_free(context)
            if model is not None:
                self._lib.llama_model_free(model)

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.close()

    @property
    def _forked(self) -> bool:
        """Asked before the lock is: if a thread held it at the fork, nobody in this process gives it back."""
        return os.getpid() != self._process

    def _open(self) -> _Open:
        return _Open(self)

    def _check_stop(self) -> None:
        if self._stop[0] != b"\0":
            self._stop[0] = b"\0"
            raise Cancelled("the device's work was cancelled")

    def _try_out(self) -> str | None:
        """Compute two tokens, so that a batch of another layout shows here and not in an answer. Also brings the weights in."""
        self.decode([Feed(0, 0, np.zeros(2, np.int32), 1)])
        last = self._lib.llama_memory_seq_pos_max(self._memory, 0)
        self._lib.llama_memory_clear(self._memory, True)
        return None if last == 1 else f"two tokens end at position {last}"

    def _failed(self, error: Exception) -> Exception:
        self.close()
        return error


class _Open:
    """The lock of a context that is open; raises RuntimeClosed otherwise, EngineFailed after a fork."""

    def __init__(self, context: LlamaContext) -> None:
        self._owner = context

    def __enter__(self) -> None:
        if self._owner._forked:
            raise EngineFailed("this runtime was opened before a fork: its threads are not in this process, open another one")
        self._owner._lock.acquire()
        if self._owner._context is None:
            self._owner._lock.release()
            raise RuntimeClosed

    def __exit__(self, *ignored: object) -> None:
        self._owner._lock.release()


def _first_byte() -> ctypes.c_void_p:
    """A C function of one pointer that is true when the byte there is not 0, for the abort callback: `strlen` of that byte and a 0.

    llama.cpp asks it at every node of its graph, thousands of times a token. A Python callback would have to take the interpreter's lock
    each time, from a thread that everyone waits for.
    """
    library = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
    return ctypes.cast(library.strlen, ctypes.c_void_p)


def _quiet() -> None:
    for _ in take_log():
        pass


def _reason() -> str:
    return next(take_log(), "it does not say why")[:200]


def _buffers() -> tuple[int, int]:
    """(KV cache, other buffers of the context) in bytes, as llama.cpp has just logged them; no function says so."""
    sizes = [(match[1], round(float(match[2]) * 2**20)) for line in take_log() if (match := _SIZE.search(line))]
    return sum(size for kind, size in sizes if kind == "KV"), sum(size for kind, size in sizes if kind != "KV")
