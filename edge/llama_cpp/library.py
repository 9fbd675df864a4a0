"""llama.cpp's C library on this machine: where it is, the functions that we call, and whether it is laid out as we think.

Looked for in this order: the file that HYBRID_LIBLLAMA names, llama-cpp-python, the xllamacpp wheel, whose extension module exports
the same C functions. No Python code of theirs is imported.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import re
from collections.abc import Iterator, Mapping
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ...shared_protocol.errors import ConfigError
from .params import Batch, Params, check_batch, check_defaults

VARIABLE = "HYBRID_LIBLLAMA"
INSTALL = "pip install xllamacpp"
# distribution -> (import package, pattern of its library, the oldest version that was tried)
PACKAGES = {
    "llama-cpp-python": ("llama_cpp", "lib/*llama.*", (0, 3, 36)),
    "xllamacpp": ("xllamacpp", "xllamacpp*.*", (2026, 10)),
}
_SUFFIXES = (".so", ".dylib", ".dll", ".pyd")
# name -> (result, arguments)
FUNCTIONS: Mapping[str, tuple[object, tuple[object, ...]]] = {
    "llama_backend_init": (None, ()),
    "llama_log_set": (None, (c_void_p, c_void_p)),
    "llama_print_system_info": (c_char_p, ()),
    "llama_model_default_params": (Params, ()),
    "llama_context_default_params": (Params, ()),
    "llama_model_load_from_file": (c_void_p, (c_char_p, Params)),
    "llama_model_free": (None, (c_void_p,)),
    "llama_model_size": (c_uint64, (c_void_p,)),
    "llama_model_is_recurrent": (c_bool, (c_void_p,)),
    "llama_model_is_hybrid": (c_bool, (c_void_p,)),
    "llama_model_has_encoder": (c_bool, (c_void_p,)),
    "llama_model_get_vocab": (c_void_p, (c_void_p,)),
    "llama_vocab_n_tokens": (c_int32, (c_void_p,)),
    "llama_tokenize": (c_int32, (c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool)),
    "llama_init_from_model": (c_void_p, (c_void_p, Params)),
    "llama_free": (None, (c_void_p,)),
    "llama_n_ctx": (c_uint32, (c_void_p,)),
    "llama_n_ctx_seq": (c_uint32, (c_void_p,)),
    "llama_n_batch": (c_uint32, (c_void_p,)),
    "llama_n_seq_max": (c_uint32, (c_void_p,)),
    "llama_set_n_threads": (None, (c_void_p, c_int32, c_int32)),
    "llama_set_abort_callback": (None, (c_void_p, c_void_p, c_void_p)),
    "llama_batch_init": (Batch, (c_int32, c_int32, c_int32)),
    "llama_batch_free": (None, (Batch,)),
    "llama_decode": (c_int32, (c_void_p, Batch)),
    "llama_get_logits": (POINTER(c_float), (c_void_p,)),
    "llama_get_memory": (c_void_p, (c_void_p,)),
    "llama_memory_clear": (None, (c_void_p, c_bool)),
    "llama_memory_seq_rm": (c_bool, (c_void_p, c_int32, c_int32, c_int32)),
    "llama_memory_seq_cp": (None, (c_void_p, c_int32, c_int32, c_int32, c_int32)),
    "llama_memory_seq_pos_min": (c_int32, (c_void_p, c_int32)),
    "llama_memory_seq_pos_max": (c_int32, (c_void_p, c_int32)),
    "llama_state_seq_get_size": (c_size_t, (c_void_p, c_int32)),
    "llama_state_seq_get_data": (c_size_t, (c_void_p, c_void_p, c_size_t, c_int32)),
    "llama_state_seq_set_data": (c_size_t, (c_void_p, c_void_p, c_size_t, c_int32)),
}


class LlamaCppUnavailable(ConfigError):
    """No usable llama.cpp library is installed; the message says what was found."""

    code = "llama_cpp_unavailable"


@dataclass(frozen=True, slots=True)
class Found:
    """A library of llama.cpp, before it is loaded."""

    path: Path
    origin: str  # the distribution that brings it, or HYBRID_LIBLLAMA
    version: str


@dataclass(frozen=True, slots=True)
class Library:
    """The loaded library: `functions` is its handle, every function of FUNCTIONS typed."""

    found: Found
    functions: ctypes.CDLL
    features: str  # of the CPU, as llama.cpp says them


def find_library(environment: Mapping[str, str] | None = None) -> Found:
    """Raises LlamaCppUnavailable when there is none, or what there is is too old or unreadable."""
    named = (os.environ if environment is None else environment).get(VARIABLE)
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise LlamaCppUnavailable(f"{VARIABLE} names {path}, which is no file", hint="name llama.cpp's shared library")
        return Found(path.resolve(), VARIABLE, "of its own")
    for distribution, (package, pattern, oldest) in PACKAGES.items():
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            continue
        folder = Path(spec.submodule_search_locations[0])
        path = next((path for path in sorted(folder.glob(pattern)) if path.suffix in _SUFFIXES), None)  # type: ignore[assignment]
        if path is None:
            continue
        version = importlib.metadata.version(distribution)
        if _numbers(version) < oldest:
            wanted = ".".join(map(str, oldest))
            raise LlamaCppUnavailable(f"{distribution} {version} is too old, at least {wanted} is needed", hint=f"{INSTALL} --upgrade")
        return Found(path, distribution, version)
    raise LlamaCppUnavailable("llama.cpp is not installed", hint=f"{INSTALL}, or name its library in {VARIABLE}")


def load_library() -> Library:
    """The library of this machine, loaded once per process and checked. Raises LlamaCppUnavailable."""
    return _load(find_library())


@cache
def _load(found: Found) -> Library:
    try:
        functions = ctypes.CDLL(str(found.path))
    except OSError as error:
        raise LlamaCppUnavailable(f"{found.path} cannot be loaded: {error}", hint=INSTALL) from None
    missing = [name for name in FUNCTIONS if not hasattr(functions, name)]
    if missing:
        raise LlamaCppUnavailable(f"{found.path} ({found.version}) has no function {missing[0]}", hint=f"{INSTALL} --upgrade")
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(functions, name)
        function.restype, function.argtypes = result, arguments
    functions.llama_log_set(ctypes.cast(_log_callback, c_void_p), None)
    functions.llama_backend_init()
    if found.origin == VARIABLE and hasattr(functions, "ggml_backend_load_all_from_path"):  # a build may keep its kernels apart, beside it
        functions.ggml_backend_load_all_from_path(str(found.path.parent).encode())
    drift = check_defaults(functions) or check_batch(functions)
    if drift:
        raise LlamaCppUnavailable(f"{found.origin} {found.version} is laid out otherwise than known: {drift}", hint=f"{INSTALL} --upgrade")
    return Library(found, functions, functions.llama_print_system_info().decode(errors="replace"))


_LOG = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_void_p)
_INFO, _WARNING, _ERROR, _LINES = 2, 3, 4, 1000
_log: list[tuple[int, str]] = []


def _keep_log(level: int, text: bytes | None, data: object) -> None:
    """llama.cpp logs to stderr otherwise."""
    if text and _INFO <= level <= _ERROR:
        _log.append((level, text.decode(errors="replace").strip()))
        del _log[:-_LINES]


_log_callback = _LOG(_keep_log)  # must outlive every call


def take_log() -> Iterator[str]:
    """What llama.cpp has logged since the last call; errors first."""
    lines, _log[:] = sorted(_log, key=lambda line: -line[0] * (line[0] >= _WARNING)), []
    return (text for _, text in lines)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
