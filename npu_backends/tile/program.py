"""What a kernel is: a flat list of instructions over tiles that stand in slots on the chip and over operands that stand outside of it.

instruction  out                ins                                      function, numbers
load         tile               part of an operand                       converts where the types differ
store        part of operand    tile                                     converts where the types differ
see          -                  the operand that holds the position      (row, window, positions): what SEEN means from here on
matmul       sums [m,n]         a i8 [m,k], b i8 [n,k]                   (1,) adds to the sums, (0,) begins them; int32
             sums [m,n]         a i8, b i8|u4, scales, (offsets) [n,k/32]   the same by groups of 32; float32
             sums [m,n]         a f32 [m,k], b f32 [k,n]                 float32
             sums [m,n]         a f32 [m,k], b f32 [n,k]                 "rows": every row of a alone, times all of b
requantise   y f32 [m,n]        sums i32, row scales [m,1], scales [1,n]
quantise     codes i8, scales   x f32 [m,k]                              (scale,) or nothing: one for every row
reduce       y f32 [m,1]        x f32 [m,k]                              max, sum, mean
map          y                  x, (y)                                   a name of MAPS, with its numbers
rotate       y f32 [h,d]        x f32, cosines, sines [1,pairs]          (interleaved,)
"""

from __future__ import annotations

import msgspec

from ..ir.value import BITS, DType

SEEN = -1  # instead of a size: as many positions as the row sees
TILE_OPS = ("load", "store", "see", "matmul", "requantise", "quantise", "reduce", "map", "rotate")
# float operations per element of what is made; "seen" and "spread" only address positions, "convert" is done on the way
MAPS = {
    "add": 1,
    "multiply": 1,
    "subtract": 1,
    "divide": 1,
    "scale": 1,
    "exp": 2,
    "inverse_root": 2,
    "silu": 4,
    "gelu": 8,
    "softcap": 3,
    "convert": 1,
    "seen": 0,
    "spread": 0,
}


class Part(msgspec.Struct, frozen=True, array_like=True):
    """Rows r0..r1 and columns c0..c1 of a slot or an operand that is seen as rows of `width`.

    r1, c1 or width SEEN: the positions that the row sees. `index` >= 0: the number at `at` in that operand is added to the rows.
    """

    place: int
    width: int
    r0: int
    r1: int
    c0: int
    c1: int
    index: int = -1
    at: int = 0

    @property
    def rows(self) -> int:
        return self.r1 - self.r0

    @property
    def cols(self) -> int:
        return self.c1 - self.c0

    @property
    def fixed(self) -> bool:
        """Whether it is the same part in every run."""
        return SEEN not in (self.r1, self.c1, self.width) and self.index < 0


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """Room on the chip for one tile. `copies`: 2 where the next one comes in meanwhile, 0 where only a simulation needs the room."""

    elements: int
    dtype: DType
    copies: int

    @property
    def bytes(self) -> int:
        return -(-self.elements * BITS[self.dtype] // 8) * self.copies

    def shape(self, part: Part) -> tuple[int, int]:
        """Rows and columns of a tile in it; as many as there is room for where it holds what a row sees."""
        if part.width == SEEN:
            return part.rows, self.elements // part.r1
        return (self.elements // part.width if part.r1 == SEEN else part.rows), part.cols


class Instruction(msgspec.Struct, frozen=True, array_like=True):
    op: str
    out: tuple[Part, ...]
    ins: tuple[Part, ...]
    function: str = ""
    numbers: tuple[float, ...] = ()


class Kernel(msgspec.Struct, frozen=True, array_like=True):
    """Operands are the inputs, then the outputs of the operation that it computes. `streams`: one transfer brings all of an operand.
    `waits`: there is no second buffer, so that a tile comes in when what was computed of the last one is done."""

    operands: tuple[DType, ...]
    slots: tuple[Slot, ...]
    instructions: tuple[Instruction, ...]
    dataflow: str
    streams: bool
    waits: bool

    @property
    def sram_bytes(self) -> int:
        return sum(slot.bytes for slot in self.slots)
