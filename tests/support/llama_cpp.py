"""llama.cpp's own tokenizer as the oracle."""

from __future__ import annotations

import ctypes
from pathlib import Path

from hybrid.edge.llama_cpp.library import LlamaCppUnavailable, find_library, load_library


def library_path() -> Path | None:
    """llama.cpp's shared library, or None when none is installed."""
    try:
        return find_library().path
    except LlamaCppUnavailable:
        return None


class LlamaTokenizer:
    """A model's tokenizer in llama.cpp."""

    def __init__(self, library: Path, model: Path) -> None:
        lib = self._lib = load_library().functions
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
