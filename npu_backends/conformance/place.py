"""A plain plan with a guard around everything, and buffers in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..base import Placement, Plan, Tiling
from ..ir.graph import Graph
from ..ir.kinds import KINDS
from ..ir.op import Op
from ..ir.semantics import Array
from ..ir.value import ARRAYS

GUARD = 64  # bytes around a value
CANARY = 0xA5


def same_memory(op: Op) -> tuple[str, str] | None:
    """(before, after) where an operation makes a value in its input's place."""
    if op.kind == "fused":
        return next((pair for inner in op.body if (pair := same_memory(inner)) and {*pair} <= _outside(op)), None)
    kind = KINDS[op.kind]
    place = 0 if kind.view else kind.overwrites
    return None if place is None else (op.inputs[place].name, op.name)


def _outside(op: Op) -> set[str]:
    return {value.name for value in (*op.inputs, *op.outputs)}


def plan_of(graph: Graph, tilings: Mapping[str, Tiling], alignment: int) -> Plan:
    """Every value in a place of its own, but for views and overwritten memory; in two arenas by turns."""
    constants, step = {value.name for value in graph.constants}, max(GUARD, alignment)
    roots = {pair[1]: pair[0] for op in graph.ops if (pair := same_memory(op))}
    placements: dict[str, Placement] = {}
    ends = {"first": step, "second": step}
    for value in graph.values():
        if value.name in constants:
            continue
        root = roots.get(value.name)
        if root is not None and root in placements:
            placements[value.name] = placements[root]
            continue
        arena = "first" if len(placements) % 2 else "second"
        size = value.elements * ARRAYS[value.dtype].itemsize
        placements[value.name] = Placement(arena, ends[arena], size)
        ends[arena] += -(-size // step) * step + step
    return Plan(placements, ends, dict(tilings))


@dataclass(frozen=True, slots=True)
class Guarded:
    """Arenas full of canaries, with buffers in them."""

    plan: Plan
    arenas: Mapping[str, Array]
    buffers: Mapping[str, Array]

    def strays(self) -> list[str]:
        """Arenas in which a byte outside of all placements has changed."""
        found = []
        for name, arena in self.arenas.items():
            free = np.ones(len(arena), bool)
            for place in self.plan.placements.values():
                if place.arena == name:
                    free[place.offset : place.offset + place.bytes] = False
            if (arena[free] != CANARY).any():
                found.append(name)
        return found


def guarded(graph: Graph, plan: Plan, inputs: Mapping[str, Array]) -> Guarded:
    arenas = {name: np.full(size, CANARY, np.uint8) for name, size in plan.arenas.items()}
    values, buffers = {value.name: value for value in graph.values()}, {}
    for name, place in plan.placements.items():
        part = arenas[place.arena][place.offset : place.offset + place.bytes]
        buffers[name] = part.view(ARRAYS[values[name].dtype]).reshape(values[name].shape)
    for name, array in inputs.items():
        buffers[name][...] = array
    return Guarded(plan, arenas, buffers)
