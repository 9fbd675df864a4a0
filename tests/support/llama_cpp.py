"""llama.cpp's own tokenizer as the oracle, through the C functions that the `xllamacpp` wheel exports.

`llama_model_params` is handled as bytes that only llama.cpp reads: it fills in its defaults and gets them back, so that no layout
of ours can drift from the installed version's.
"""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path


class _Params(ctypes.Structure):
    _fields_ = (("content", ctypes.c_ubyte * 512),)


_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_silent = _LOG(lambda level, text, data: None)


def library_path() -> Path | None:
    """The shared library inside the wheel, or None when xllamacpp is not installed."""
    spec = importlib.util.find_spec("xllamacpp")
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("xllamacpp*.so"), None)


class LlamaTokenizer:
    """A model's tokenizer in llama.cpp."""

    def __init__(self, library: Path, model: Path) -> None:
        lib = self._lib = ctypes.CDLL(str(library))
        lib.llama_model_default_params.restype = _Params
        lib.llama_model_load_from_file.restype = ctypes.c_void_p
        lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, _Params]
        lib.llama_model_get_vocab.restype = ctypes.c_void_p
        lib.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
        lib.llama_tokenize.argtypes = [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_int32,
            ctypes.POINTER(ctypes.c_int32),
            ctypes.c_int32,
            ctypes.c_bool,
            ctypes.c_bool,
        ]
        lib.llama_model_free.argtypes = [ctypes.c_void_p]
        lib.llama_log_set(_silent, None)
        lib.llama_backend_init()
        self._model = lib.llama_model_load_from_file(str(model).encode(), lib.llama_model_default_params())
        assert self._model, f"llama.cpp does not load {model}"
        self._vocab = lib.llama_model_get_vocab(self._model)

    def encode(self, text: str, parse_special: bool = True) -> list[int]:
        raw = text.encode()
        ids = (ctypes.c_int32 * (len(raw) + 8))()
        count = self._lib.llama_tokenize(self._vocab, raw, len(raw), ids, len(ids), False, parse_special)
        assert count >= 0
        return list(ids[:count])

    def close(self) -> None:
        self._lib.llama_model_free(self._model)
