"""Which computation each instruction is: a table, by operation and types, and the room that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..ir.kinds import GROUP
from . import compute
from .compute import Computation
from .program import Instruction, Kernel

Key = tuple[str, str]


def _table() -> dict[Key, Computation]:
    table: dict[Key, Computation] = {
        ("matmul", "i8 i8 -> i32"): compute.matmul_i8,
        ("matmul", "f32 f32 -> f32"): compute.matmul_f32,
        ("matmul rows", "f32 f32 -> f32"): compute.matmul_rows,
        ("requantise", "i32 f32 f32 -> f32"): compute.requantise,
        ("quantise", "f32 -> i8 f32"): compute.quantise,
        ("rotate", "f32 f32 f32 -> f32"): compute.rotate,
    }
    for codes in ("i8", "u4"):
        for scales in ("f32", "f32 f32"):
            table["matmul", f"i8 {codes} {scales} -> f32"] = compute.matmul_groups
    for name, run in compute.REDUCTIONS.items():
        table[f"reduce {name}", "f32 -> f32"] = run
    for name, run in compute.MAP_FUNCTIONS.items():
        types = {
            "convert": ("f32 -> f32", "f16 -> f32", "i8 -> f32", "u4 -> f32"),
            "seen": ("f32 -> f32", "f16 -> f32"),
        }.get(name, ("f32 f32 -> f32" if name in ("add", "multiply", "subtract", "divide") else "f32 -> f32",))
        for pair in types:
            table[f"map {name}", pair] = run
    return table


COMPUTATIONS: Mapping[Key, Computation] = MappingProxyType(_table())


def key_of(kernel: Kernel, instruction: Instruction) -> Key:
    """Its row in the table."""
    ins, out = (" ".join(kernel.slots[part.place].dtype for part in parts) for parts in (instruction.ins, instruction.out))
    return f"{instruction.op} {instruction.function}".rstrip(), f"{ins} -> {out}"


def workspace_floats(kernel: Kernel) -> int:
    """Room that a kernel's computations take at most, beside its slots."""
    most = 0
    for instruction in kernel.instructions:
        if instruction.op in ("load", "store", "see"):
            continue
        shapes = [kernel.slots[part.place].shape(part) for part in (*instruction.ins, *instruction.out)]
        rows, cols = kernel.slots[instruction.out[0].place].shape(instruction.out[0])
        groups = max(1, shapes[0][1] // GROUP) if instruction.op == "matmul" and len(instruction.ins) > 2 else 2
        most = max(most, sum(r * c for r, c in shapes) + groups * rows * (cols + 1) + 2 * rows)
    return most
