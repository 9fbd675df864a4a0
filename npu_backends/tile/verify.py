"""Whether a kernel stays within its slots and operands: what comes out of a file is not trusted to."""

from __future__ import annotations

from collections.abc import Sequence

from ...shared_protocol.compile_errors import ArtifactRejected
from .program import MAPS, SEEN, TILE_OPS, Instruction, Kernel, Part
from .shapes import fit

_SIZES = {"load": (1, 1), "store": (1, 1), "see": (0, 1), "requantise": (1, 3), "quantise": (2, 1), "reduce": (1, 1), "rotate": (1, 3)}


def verify(kernel: Kernel, elements: Sequence[int]) -> None:
    """`elements`: of each operand. Raises ArtifactRejected naming the first instruction that reaches beyond, or that is none."""
    if len(elements) != len(kernel.operands):
        raise ArtifactRejected(f"a kernel has {len(kernel.operands)} operands, and is given {len(elements)}")
    room = [slot.elements for slot in kernel.slots]
    if any(size < 1 for size in room):
        raise ArtifactRejected("a kernel has a slot without room")
    for number, instruction in enumerate(kernel.instructions):
        _check_form(number, instruction)
        outside = {"load": instruction.ins, "store": instruction.out, "see": instruction.ins}.get(instruction.op, ())
        for part in (*instruction.out, *instruction.ins):
            limits = elements if any(part is other for other in outside) else room
            if not _within(part, limits) or (part.index >= 0 and not (part.index < len(elements) and 0 <= part.at < elements[part.index])):
                raise ArtifactRejected(f"instruction {number}, {instruction.op}, reaches beyond what it is given")
        if not fit(kernel.slots, instruction):
            raise ArtifactRejected(f"instruction {number}, {instruction.op} {instruction.function}, has tiles that do not fit together")


def _check_form(number: int, instruction: Instruction) -> None:
    known = instruction.op in TILE_OPS and (instruction.op != "map" or instruction.function in MAPS)
    sizes = len(instruction.out), len(instruction.ins)
    if not known or _SIZES.get(instruction.op, sizes) != sizes:
        raise ArtifactRejected(f"instruction {number}, {instruction.op} {instruction.function}, is none that is known")


def _within(part: Part, limits: Sequence[int]) -> bool:
    if not 0 <= part.place < len(limits):
        return False
    if part.width == SEEN:
        return part.r0 == 0 and part.c0 == 0 and part.c1 == SEEN and 0 < part.r1 <= limits[part.place]
    if part.r1 == SEEN:
        return part.r0 == 0 and part.c0 == 0 and 0 < part.c1 == part.width <= limits[part.place]
    if not (0 <= part.r0 < part.r1 and 0 <= part.c0 < part.c1 <= part.width):
        return False
    return part.r1 * part.width <= limits[part.place]
