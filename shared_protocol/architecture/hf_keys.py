"""Typed look-ups in a JSON object from a model's folder: what is missing, of the wrong type or out of range names its key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from ..errors import ModelFileError

T = TypeVar("T")


class Keys:
    """A key whose value is null counts as left out, as in the files' own library."""

    def __init__(self, file: str, values: Mapping[str, Any], prefix: str = "") -> None:
        self.file = file
        self.values = values
        self.prefix = prefix  # of the keys in errors

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        value = self.values[key] if key in self else default
        self.require(value is not None, key, "is missing")
        right = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        self.require(right, key, f"must be {kind.__name__}, found {type(value).__name__}")
        assert isinstance(value, kind)
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.get(key, int, default)
        self.require(low <= value <= high, key, f"must lie between {low} and {high}, found {value!r:.40}")
        return value

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """A float; JSON writes whole ones without a point."""
        value = self.values[key] if key in self else default
        kind = int if isinstance(value, int) else float
        found = self.get(key, kind, None if default is None else kind(default))
        self.require(low <= found <= high, key, f"must lie between {low} and {high}, found {found!r:.40}")
        return float(found)

    def numbers(self, key: str, length: int, low: float, high: float) -> tuple[float, ...]:
        value = self.get(key, list)
        self.require(len(value) == length, key, f"has {len(value)} entries, expected {length}")
        right = all(type(entry) in (int, float) and low <= entry <= high and math.isfinite(entry) for entry in value)
        self.require(right, key, f"must be numbers between {low} and {high}")
        return tuple(map(float, value))

    def inner(self, key: str) -> Keys:
        """The object at `key`, empty when it is left out."""
        return Keys(self.file, self.get(key, dict, {}), f"{self.prefix}{key}.")

    def require(self, holds: bool, key: str, problem: str) -> None:
        if not holds:
            raise ModelFileError(f"{self.file}: the key {self.prefix + key!r} {problem}")
