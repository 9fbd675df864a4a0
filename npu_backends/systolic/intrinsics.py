"""What the chip has for each tile operation: a table, by operation and types. What is not in it, the chip cannot do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ..ir.kinds import GROUP
from ..tile.program import MAPS, Instruction, Kernel
from . import compute
from .compute import Computation

Unit = Literal["array", "vector"]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    name: str
    unit: Unit
    run: Computation
    format: str | None = None  # of the weights, that the chip's array must take; "float": f16 or f32
    lane_ops: int = 0  # float operations of a vector lane per element: of what is made, or of what is reduced


def _table() -> dict[tuple[str, str], Intrinsic]:
    table = {
        ("matmul", "i8 i8 -> i32"): Intrinsic("array.i8", "array", compute.matmul_i8, "int8_channel"),
        ("matmul", "f32 f32 -> f32"): Intrinsic("array.float", "array", compute.matmul_f32, "float"),
        ("matmul rows", "f32 f32 -> f32"): Intrinsic("array.float.rows", "array", compute.matmul_rows, "f32"),
        ("requantise", "i32 f32 f32 -> f32"): Intrinsic("vector.requantise", "vector", compute.requantise, lane_ops=2),
        ("quantise", "f32 -> i8 f32"): Intrinsic("vector.quantise", "vector", compute.quantise, lane_ops=4),
        ("rotate", "f32 f32 f32 -> f32"): Intrinsic("vector.rotate", "vector", compute.rotate, lane_ops=3),
    }
    for codes, name in (("i8", "int8_group32"), ("u4", "int4_group32")):
        for scales in ("f32", "f32 f32"):
            table["matmul", f"i8 {codes} {scales} -> f32"] = Intrinsic(f"array.{name}", "array", compute.matmul_groups, name)
    for name, run in compute.REDUCTIONS.items():
        table[f"reduce {name}", "f32 -> f32"] = Intrinsic(f"vector.{name}", "vector", run, lane_ops=1)
    for name, run in compute.MAP_FUNCTIONS.items():
        types = {
            "convert": ("f32 -> f32", "f16 -> f32", "i8 -> f32", "u4 -> f32"),
            "seen": ("f32 -> f32", "f16 -> f32"),
        }.get(name, ("f32 f32 -> f32" if name in ("add", "multiply", "subtract", "divide") else "f32 -> f32",))
        for pair in types:
            table[f"map {name}", pair] = Intrinsic(f"vector.{name}", "vector", run, lane_ops=MAPS[name])
    return table


INTRINSICS: Mapping[tuple[str, str], Intrinsic] = MappingProxyType(_table())


def key_of(kernel: Kernel, instruction: Instruction) -> tuple[str, str]:
    """Its row in the table."""
    ins, out = (" ".join(kernel.slots[part.place].dtype for part in parts) for parts in (instruction.ins, instruction.out))
    return f"{instruction.op} {instruction.function}".rstrip(), f"{ins} -> {out}"


def workspace_floats(kernel: Kernel) -> int:
    """Room that the simulation of a kernel's computations takes at most."""
    most = 0
    for instruction in kernel.instructions:
        if instruction.op in ("load", "store", "see"):
            continue
        shapes = [kernel.slots[part.place].shape(part) for part in (*instruction.ins, *instruction.out)]
        rows, cols = kernel.slots[instruction.out[0].place].shape(instruction.out[0])
        groups = max(1, shapes[0][1] // GROUP) if instruction.op == "matmul" and len(instruction.ins) > 2 else 2
        most = max(most, sum(r * c for r, c in shapes) + groups * rows * (cols + 1) + 2 * rows)
    return most
