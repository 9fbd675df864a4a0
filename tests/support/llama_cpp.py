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
        self._piece = lib.llama_token_to_piece
        self._piece.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_bool]
        self._model = lib.llama_model_load_from_file(str(model).encode(), lib.llama_model_default_params())
        assert self._model, f"llama.cpp does not load {model}"
        self._vocab = lib.llama_model_get_vocab(self._model)

    def encode(self, text: str, parse_special: bool = True, add_special: bool = False) -> list[int]:
        raw = text.encode()
        ids = (ctypes.c_int32 * (2 * len(raw) + 8))()
        count = self._lib.llama_tokenize(self._vocab, raw, len(raw), ids, len(ids), add_special, parse_special)
        assert count >= 0
        return list(ids[:count])

    def piece(self, token_id: int) -> bytes:
        """What a token adds to a text that goes on; b"" for control tokens."""
        buffer = ctypes.create_string_buffer(1024)
        count = self._piece(self._vocab, token_id, buffer, len(buffer), 0, False)
        assert count >= 0
        return buffer.raw[:count]

    def close(self) -> None:
        self._lib.llama_model_free(self._model)
