"""Run kernels: tiles come from planned buffers into a scratch memory, are computed there, and go back. Nothing is allocated that grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...shared_protocol.errors import InvalidRequest
from ..ir.semantics import Array, visible
from ..ir.value import ARRAYS
from .computations import COMPUTATIONS, key_of
from .compute import Computation, Workspace
from .program import SEEN, Instruction, Kernel, Part

Step = Callable[[Sequence[Array]], None]  # one instruction, given the operands as flat arrays
LINE = 64  # bytes


def slot_bytes(kernel: Kernel) -> int:
    """Of memory for all slots of a kernel when it runs in NumPy, where a code of four bits takes a byte."""
    return sum(-(-slot.elements * ARRAYS[slot.dtype].itemsize // LINE) * LINE for slot in kernel.slots)


def bind(kernel: Kernel, scratch: Array, space: Workspace) -> list[Step]:
    """A kernel's instructions with its slots at their places in `scratch`, bytes."""
    slots, at = [], 0
    for slot in kernel.slots:
        size = slot.elements * ARRAYS[slot.dtype].itemsize
        slots.append(scratch[at : at + size].view(ARRAYS[slot.dtype]))
        at += -(-size // LINE) * LINE
    return [_bind(kernel, instruction, slots, space) for instruction in kernel.instructions]


def _bind(kernel: Kernel, instruction: Instruction, slots: Sequence[Array], space: Workspace) -> Step:
    match instruction.op:
        case "load":
            return _load(_view(slots, instruction.out[0], space), instruction.ins[0])
        case "store":
            return _store(instruction.out[0], _view(slots, instruction.ins[0], space))
        case "see":
            return _see(instruction, space)
    run = COMPUTATIONS[key_of(kernel, instruction)]
    if all(part.fixed for part in (*instruction.out, *instruction.ins)):
        out = [_view(slots, part, space) for part in instruction.out]
        return _computed(run, space, out, [_view(slots, part, space) for part in instruction.ins], instruction.numbers)
    return _computed_of_seen(run, space, slots, instruction)


def _load(tile: Array, source: Part) -> Step:
    def step(operands: Sequence[Array]) -> None:
        np.copyto(tile, _operand(operands, source))

    return step


def _store(target: Part, tile: Array) -> Step:
    def step(operands: Sequence[Array]) -> None:
        np.copyto(_operand(operands, target), tile, casting="same_kind")

    return step


def _see(instruction: Instruction, space: Workspace) -> Step:
    place, (row, window, positions) = instruction.ins[0].place, map(int, instruction.numbers)

    def step(operands: Sequence[Array]) -> None:
        first = int(operands[place][0])
        if first < 0 or first + row >= positions:
            raise InvalidRequest(f"row {row} at position {first} is beyond the {positions} positions of the cache")
        seen = visible(first, row, window)
        space.start, space.stop = seen.start, seen.stop

    return step


def _computed(run: Computation, space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Sequence[float]) -> Step:
    def step(operands: Sequence[Array]) -> None:
        run(space, out, ins, numbers)

    return step


def _computed_of_seen(run: Computation, space: Workspace, slots: Sequence[Array], instruction: Instruction) -> Step:
    def step(operands: Sequence[Array]) -> None:
        out = [_view(slots, part, space) for part in instruction.out]
        run(space, out, [_view(slots, part, space) for part in instruction.ins], instruction.numbers)

    return step


def _view(slots: Sequence[Array], part: Part, space: Workspace) -> Array:
    flat, seen = slots[part.place], space.stop - space.start
    if part.width == SEEN:
        return flat[: part.r1 * seen].reshape(part.r1, seen)
    if part.r1 == SEEN:
        return flat[: seen * part.width].reshape(seen, part.width)
    return flat[part.r0 * part.width : part.r1 * part.width].reshape(-1, part.width)[:, part.c0 : part.c1]


def _operand(operands: Sequence[Array], part: Part) -> Array:
    flat, r0, r1 = operands[part.place], part.r0, part.r1
    if part.index >= 0:
        row = int(operands[part.index][part.at])
        r0, r1 = r0 + row, r1 + row
        if row < 0 or r1 * part.width > len(flat):
            raise InvalidRequest(f"row {row} is asked for, beyond the {len(flat) // part.width} that there are")
    return flat[r0 * part.width : r1 * part.width].reshape(-1, part.width)[:, part.c0 : part.c1]
