"""What flows between operations: a named array of a fixed shape and type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from ...shared_protocol.compile_errors import GraphInvalid

DType = Literal["f32", "f16", "i32", "i8", "u4"]
BITS: Mapping[DType, int] = MappingProxyType({"f32": 32, "f16": 16, "i32": 32, "i8": 8, "u4": 4})
# a code of four bits takes a byte of its own while the interpreter holds it, and half of one where it is stored
ARRAYS: Mapping[DType, np.dtype[np.generic]] = MappingProxyType(
    {
        "f32": np.dtype(np.float32),
        "f16": np.dtype(np.float16),
        "i32": np.dtype(np.int32),
        "i8": np.dtype(np.int8),
        "u4": np.dtype(np.uint8),
    }
)
MAX_ELEMENTS = 1 << 40


@dataclass(frozen=True, slots=True)
class Value:
    """An array by name. Two values of one name in one graph are the same value."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    def __post_init__(self) -> None:
        if not self.name or any(c.isspace() or c in '%"(){}=,:' for c in self.name):
            raise GraphInvalid(f"{self.name!r} is no name of a value", hint='a name has no spaces and none of %"(){}=,:')
        if self.dtype not in BITS:
            raise GraphInvalid(f"{self.name} has the type {self.dtype!r}; there are {', '.join(BITS)}")
        if not all(isinstance(size, int) and size > 0 for size in self.shape) or self.elements > MAX_ELEMENTS:
            raise GraphInvalid(f"{self.name} has the shape {list(self.shape)}: sizes are positive, and their product at most 2^40")

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """As it is stored: two codes of four bits in a byte."""
        return -(-self.elements * BITS[self.dtype] // 8)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{','.join(map(str, self.shape))}]"
