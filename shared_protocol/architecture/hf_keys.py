"""Look-ups in a JSON object from a model's folder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .typed_keys import TypedKeys


class Keys(TypedKeys):
    """A key whose value is null counts as left out, as in the files' own library."""

    def __init__(self, file: str, values: Mapping[str, Any], prefix: str = "") -> None:
        super().__init__(file, values)
        self.prefix = prefix  # of the keys in errors

    def shown(self, key: str) -> str:
        return self.prefix + key

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
