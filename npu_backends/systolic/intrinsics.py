"""What the chip has for each instruction of a kernel: a table, by operation and types. What is not in it, the chip cannot do.

What an instruction computes is the same on every chip (../tile/computations.py); here stands which engine does it, and how fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ..tile.computations import COMPUTATIONS
from ..tile.program import MAPS

Unit = Literal["array", "vector"]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    name: str
    unit: Unit
    format: str | None = None  # of the weights, that the chip's array must take; "float": f16 or f32
    lane_ops: int = 0  # float operations of a vector lane per element: of what is made, or of what is reduced


def _table() -> dict[tuple[str, str], Intrinsic]:
    table = {
        ("matmul", "i8 i8 -> i32"): Intrinsic("array.i8", "array", "int8_channel"),
        ("matmul", "f32 f32 -> f32"): Intrinsic("array.float", "array", "float"),
        ("matmul rows", "f32 f32 -> f32"): Intrinsic("array.float.rows", "array", "f32"),
        ("requantise", "i32 f32 f32 -> f32"): Intrinsic("vector.requantise", "vector", lane_ops=2),
        ("quantise", "f32 -> i8 f32"): Intrinsic("vector.quantise", "vector", lane_ops=4),
        ("rotate", "f32 f32 f32 -> f32"): Intrinsic("vector.rotate", "vector", lane_ops=3),
    }
    for codes, name in (("i8", "int8_group32"), ("u4", "int4_group32")):
        for scales in ("f32", "f32 f32"):
            table["matmul", f"i8 {codes} {scales} -> f32"] = Intrinsic(f"array.{name}", "array", name)
    for operation, types in COMPUTATIONS:
        kind, _, name = operation.partition(" ")
        if kind in ("map", "reduce"):
            table[operation, types] = Intrinsic(f"vector.{name}", "vector", lane_ops=MAPS.get(name, 1))
    return table


INTRINSICS: Mapping[tuple[str, str], Intrinsic] = MappingProxyType(_table())
