"""Typed look-ups of what a model's file says: what is missing, of the wrong type or out of range is a ModelFileError that names its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ..errors import ModelFileError

T = TypeVar("T")


class TypedKeys:
    """A value of None counts as left out."""

    def __init__(self, file: str, values: Mapping[str, Any]) -> None:
        self.file = file
        self.values = values

    def full(self, key: str) -> str:
        """The key as the file has it, under which `values` holds it."""
        return key

    def shown(self, key: str) -> str:
        """The key as errors name it."""
        return self.full(key)

    def __contains__(self, key: str) -> bool:
        return self.values.get(self.full(key)) is not None

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        value = self.values[self.full(key)] if key in self else default
        self.require(value is not None, key, "is missing")
        right = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
        self.require(right, key, f"must be {kind.__name__}, found {type(value).__name__}")
        assert isinstance(value, kind)
        return value

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        value = self.get(key, int, default)
        self.require(low <= value <= high, key, f"must lie between {low} and {high}, found {value!r:.40}")
        return value

    def require(self, holds: bool, key: str, problem: str) -> None:
        if not holds:
            raise ModelFileError(f"{self.file}: the key {self.shown(key)!r} {problem}")
