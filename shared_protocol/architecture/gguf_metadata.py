"""Typed look-ups in a GGUF file's metadata: what is missing, of the wrong type or out of range is a ModelFileError that names its key."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelFileError
from ..gguf import GgufFile

T = TypeVar("T")


class Metadata:
    """Keys that begin with a dot are the family's own: `.block_count` is `llama.block_count` in a file whose architecture is llama."""

    def __init__(self, gguf: GgufFile) -> None:
        self.file = gguf.path.name
        self.values = gguf.metadata
        self.family = ""
        self.family = self.get("general.architecture", str)

    def full(self, key: str) -> str:
        return self.family + key if key.startswith(".") else key

    def __contains__(self, key: str) -> bool:
        return self.full(key) in self.values

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        value = self.values.get(self.full(key), default)
        self.require(value is not None, key, "is missing")
        right = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        self.require(right, key, f"must be {kind.__name__}, found {type(value).__name__}")
        assert isinstance(value, kind)
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.get(key, int, default)
        self.require(low <= value <= high, key, f"must lie between {low} and {high}, found {value}")
        return value

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

    def require(self, holds: bool, key: str, problem: str) -> None:
        if not holds:
            raise ModelFileError(f"{self.file}: the key {self.full(key)!r} {problem}")
