"""What kernels are written with: they name parts of values, and the builder knows which of them are on the chip already.

An operation, or a fused one, is computed strip by strip: some of its rows at a time. What is made and read inside stays on the chip for
the strip; everything else is loaded and stored tile by tile. Rows are counted from the strip's first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..ir.op import Op, flat
from ..ir.value import DType, Value
from .program import SEEN, Instruction, Part, Slot


def split(size: int, step: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of parts of `step`, the last one of what is left."""
    for start in range(0, size, step):
        yield start, min(start + step, size)


@dataclass(slots=True)
class Builder:
    op: Op
    rows: int  # of the whole operation
    after: Mapping[str, tuple[Op, ...]]  # what runs on each tile of a product, by the product's name
    local: frozenset[str]  # of these values only a tile is ever on the chip
    first: int = 0  # of the strip
    count: int = 0  # rows in the strip
    chunk: int = 1  # rows that are computed at a time where rows stand alone
    slots: list[Slot] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    operands: list[Value] = field(init=False)
    inside: frozenset[str] = field(init=False)  # made and read in here, and held for the strip
    _numbers: dict[str, int] = field(init=False)  # of operands by name
    _aliases: dict[str, str] = field(default_factory=dict)
    _keys: dict[str, int] = field(default_factory=dict)
    _held: dict[int, Part] = field(default_factory=dict)  # what a slot was loaded with

    def __post_init__(self) -> None:
        body = flat((self.op,))
        read = {value.name for inner in body for value in inner.inputs}
        self.operands = [*self.op.inputs, *self.op.outputs]
        self._numbers = {value.name: number for number, value in enumerate(self.operands)}
        self.inside = frozenset(value.name for inner in body for value in inner.outputs if value.name in read) - self.local

    # where values are

    def number(self, value: Value) -> int:
        return self._numbers[value.name]

    def is_output(self, value: Value) -> bool:
        return value.name in self._numbers and self._numbers[value.name] >= len(self.op.inputs)

    def alias(self, value: Value, other: Value) -> None:
        """`value` is the memory of `other`."""
        self._aliases[value.name] = self._aliases.get(other.name, other.name)

    def slot(self, key: str, rows: int, cols: int, dtype: DType, copies: int = 1) -> int:
        """The slot of that name, with room for the largest of its tiles."""
        number = self._keys.setdefault(key, len(self.slots))
        if number == len(self.slots):
            self.slots.append(Slot(rows * cols, dtype, copies))
        elif rows * cols > self.slots[number].elements:
            self.slots[number] = Slot(rows * cols, dtype, max(copies, self.slots[number].copies))
        return number

    def tile(self, key: str, rows: int, cols: int, dtype: DType, copies: int = 1) -> Part:
        return Part(self.slot(key, rows, cols, dtype, copies), cols, 0, rows, 0, cols)

    def seen(self, key: str, rows: int, capacity: int, turned: bool = False) -> Part:
        """[rows, SEEN], or [SEEN, rows] when turned, in a slot that only a simulation needs: a chip reads the whole tile in place."""
        if turned:
            return Part(self.slot(key, capacity, rows, "f32", 0), rows, 0, SEEN, 0, rows)
        return Part(self.slot(key, rows, capacity, "f32", 0), SEEN, 0, rows, 0, SEEN)

    def _strip(self, value: Value, name: str) -> int:
        """The slot of the whole strip of a value that stays on the chip."""
        size = value.elements // self.rows
        return self.slot(f"strip {name}", self.count, size, value.dtype)

    def part(self, value: Value, width: int, r0: int, r1: int, c0: int = 0, c1: int | None = None) -> Part:
        """A tile with rows r0..r1 of width `width` of the strip: where it stands, or loaded."""
        c1 = width if c1 is None else c1
        name = self._aliases.get(value.name, value.name)
        if name in self.inside:
            return Part(self._strip(value, name), width, r0, r1, c0, c1)
        if name in self.local:
            return self.made(value, width, r0, r1, c0, c1)
        base = self.first * (value.elements // self.rows) // width
        return self.load(f"tile {value.name}", self._numbers[name], value.dtype, Part(-1, width, base + r0, base + r1, c0, c1))

    def whole(self, value: Value, width: int, r0: int, r1: int, c0: int = 0, c1: int | None = None, *, copies: int = 2) -> Part:
        """A tile of a value that is the same for every strip: weights, tables, a cache."""
        number = self._numbers[self._aliases.get(value.name, value.name)]
        source = Part(-1, width, r0, r1, c0, width if c1 is None else c1)
        return self.load(f"tile {value.name}", number, value.dtype, source, copies)

    def row_at(self, value: Value, width: int, row: int, index: Value, at: int) -> Part:
        """One row, whose number stands in `index`."""
        source = Part(-1, width, row, row + 1, 0, width, self.number(index), at)
        return self.load(f"tile {value.name}", self.number(value), value.dtype, source)

    def load(self, key: str, operand: int, dtype: DType, source: Part, copies: int = 2) -> Part:
        source = Part(operand, *(getattr(source, name) for name in Part.__struct_fields__[1:]))
        target = self.tile(key, source.rows, source.cols, dtype, copies)
        if self._held.get(target.place) != source:
            self._held[target.place] = source
            self.emit("load", (target,), (source,))
        return target

    def made(self, value: Value, width: int, r0: int, r1: int, c0: int = 0, c1: int | None = None) -> Part:
        """A tile to compute that part of a value into."""
        c1 = width if c1 is None else c1
        if value.name in self.inside:
            return Part(self._strip(value, value.name), width, r0, r1, c0, c1)
        return self.tile(f"tile {value.name}", r1 - r0, c1 - c0, value.dtype, 2 if self.is_output(value) else 1)

    def done(self, value: Value, tile: Part, width: int, r0: int, r1: int, c0: int = 0, c1: int | None = None) -> None:
        """Store a tile of a value, if anyone outside reads it."""
        if self.is_output(value):
            base = self.first * (value.elements // self.rows) // width
            target = Part(self.number(value), width, base + r0, base + r1, c0, width if c1 is None else c1)
            self.emit("store", (target,), (tile,))

    def changed(self, value: Value) -> None:
        """What was loaded of an operand is no longer what stands there."""
        self._held = {slot: source for slot, source in self._held.items() if source.place != self.number(value)}

    # instructions

    def emit(self, op: str, out: Sequence[Part], ins: Sequence[Part], function: str = "", numbers: Sequence[float] = ()) -> None:
        self.instructions.append(Instruction(op, tuple(out), tuple(ins), function, tuple(numbers)))

    def map(self, function: str, out: Part, *ins: Part, numbers: Sequence[float] = ()) -> None:
        self.emit("map", (out,), ins, function, numbers)

    def reduce(self, function: str, out: Part, x: Part) -> None:
        self.emit("reduce", (out,), (x,), function)

    def matmul(self, sums: Part, *ins: Part, add: bool = False, function: str = "") -> None:
        self.emit("matmul", (sums,), ins, function, (float(add),))

    def see(self, position: Value, row: int, window: int, positions: int) -> None:
        self.emit("see", (), (Part(self.number(position), 1, 0, 1, 0, 1),), numbers=(row, window, positions))

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Rows of the strip that are computed at a time."""
        return split(self.count, self.chunk)
