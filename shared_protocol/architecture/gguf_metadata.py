"""Look-ups in a GGUF file's metadata."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..gguf import GgufFile
from .typed_keys import TypedKeys


class Metadata(TypedKeys):
    """Keys that begin with a dot are the family's own: `.block_count` is `llama.block_count` in a file whose architecture is llama."""

    def __init__(self, gguf: GgufFile) -> None:
        super().__init__(gguf.path.name, gguf.metadata)
        self.family = ""
        self.family = self.get("general.architecture", str)

    def full(self, key: str) -> str:
        return self.family + key if key.startswith(".") else key

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        value = self.get(key, float, default)
        self.require(math.isfinite(value) and low <= value <= high, key, f"must lie between {low} and {high}, found {value}")
        return value

    def numbers(self, key: str, length: int) -> NDArray[np.generic]:
        value = self.get(key, np.ndarray)
        self.require(value.shape == (length,), key, f"has {len(value)} entries, expected {length}")
        return value

    def same(self, key: str, expected: object) -> None:
        """Require that `key`, when it is there, says what the rest of the file implies, or what alone is supported."""
        value = self.values.get(self.full(key), expected)
        plain = isinstance(value, bool | int | float | str) and value == expected
        self.require(plain, key, f"is {value!r:.40}, only {expected} is supported here")
