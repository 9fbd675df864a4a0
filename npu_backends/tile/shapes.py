"""Whether the tiles of an instruction fit together, as the table of program.py says."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.kinds import GROUP
from .program import SEEN, Instruction, Part, Slot

Shape = tuple[int, int]
NUMBERS = {
    "matmul": (1,),
    "rotate": (1,),
    "quantise": (0, 1),
    "see": (3,),
    "scale": (1,),
    "softcap": (1,),
    "inverse_root": (1,),
    "seen": (0, 1, 2),
}


def fit(slots: Sequence[Slot], instruction: Instruction) -> bool:
    """Of parts that are within their slots and operands, and of as many as the operation has."""
    name = instruction.function if instruction.op == "map" else instruction.op
    if len(instruction.numbers) not in NUMBERS.get(name, (0,)):
        return False
    out, ins = [_shape(part) for part in instruction.out], [_shape(part) for part in instruction.ins]
    match instruction.op:
        case "see":
            return instruction.ins[0].index < 0
        case "load" | "store":
            return out == ins
        case "matmul":
            return _product(out[0], ins, instruction.function)
        case "requantise":
            (m, n) = out[0]
            return ins == [(m, n), (m, 1), (1, n)]
        case "quantise":
            return out == [ins[0], (ins[0][0], 1)]
        case "reduce":
            return out == [(ins[0][0], 1)]
        case "rotate":
            return out == ins[:1] and ins[1] == ins[2] and ins[1][0] == 1 and 2 * ins[1][1] <= out[0][1]
    if instruction.function in ("seen", "spread"):
        return _of_seen(slots, instruction)
    (m, n) = out[0]
    return bool(ins) and ins[0] in ((m, n), (1, n)) and all(shape in ((m, n), (m, 1), (1, n)) for shape in ins)


def _shape(part: Part) -> Shape:
    """SEEN for a size that is known in a run only."""
    return (SEEN if part.r1 == SEEN else part.rows), (SEEN if part.c1 == SEEN else part.cols)


def _product(sums: Shape, ins: Sequence[Shape], function: str) -> bool:
    if len(ins) < 2:
        return False
    (m, n), (rows, k) = sums, ins[0]
    if rows != m or function not in ("", "rows"):
        return False
    if len(ins) > 2:
        return ins[1] == (n, k) and k % GROUP == 0 and all(shape == (n, k // GROUP) for shape in ins[2:])
    return ins[1] in ((n, k), (k, n))


def _of_seen(slots: Sequence[Slot], instruction: Instruction) -> bool:
    """What a row sees has room for all positions, and comes from a tile of all positions or goes back to one."""
    if len(instruction.ins) != 1:
        return False
    out, source = (slots[part.place].shape(part) for part in (instruction.out[0], instruction.ins[0]))
    return out == (source[::-1] if len(instruction.numbers) == 2 else source)
