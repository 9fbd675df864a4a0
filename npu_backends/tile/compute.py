"""What instructions compute, into tiles that are there: the arithmetic of ../ir/semantics.py, step by step, to the bit.

Int8 products run as float32 ones, at most 1,024 deep, whose sums float32 holds exactly; `Workspace` has the room for their operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..ir.kinds import GROUP
from ..ir.semantics import EXACT, QUIETEST, Array

ONE = np.float32(1)


@dataclass(slots=True)
class Workspace:
    """Float32 room that a computation uses and leaves, and the positions that the current row sees."""

    room: Array
    start: int = 0
    stop: int = 0

    def take(self, *shapes: tuple[int, ...]) -> list[Array]:
        """Arrays beside each other; what was taken before is given back."""
        taken, at = [], 0
        for shape in shapes:
            size = math.prod(shape)
            taken.append(self.room[at : at + size].reshape(shape))
            at += size
        return taken


Numbers = Sequence[float]
Computation = Callable[[Workspace, Sequence[Array], Sequence[Array], Numbers], object]


def matmul_i8(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    (sums,), (a, w) = out, ins
    if not numbers[0]:
        sums.fill(0)
    for at in range(0, a.shape[1], EXACT):
        part, weights = a[:, at : at + EXACT], w[:, at : at + EXACT]
        floats, columns, made, whole = space.take(part.shape, weights.shape, sums.shape, sums.shape)
        np.copyto(floats, part)
        np.copyto(columns, weights)
        np.matmul(floats, columns.T, out=made)
        np.copyto(whole.view(np.int32), made, casting="unsafe")
        np.add(sums, whole.view(np.int32), out=sums)


def matmul_groups(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    """Group after group in ascending order, so that float sums have the same bits however the inputs are cut."""
    (sums,), (a, w, scales, *offsets) = out, ins
    if not numbers[0]:
        sums.fill(0)
    (rows, inputs), outputs = a.shape, len(w)
    groups = inputs // GROUP
    shapes = (groups, rows, GROUP), (outputs, groups, GROUP), (groups, rows, outputs), (groups, rows, 1)
    floats, columns, made, code_sums = space.take(*shapes)
    np.copyto(floats, a.reshape(rows, groups, GROUP).transpose(1, 0, 2))
    np.copyto(columns.reshape(outputs, inputs), w)
    np.matmul(floats, columns.transpose(1, 2, 0), out=made)
    np.add.reduce(floats, axis=2, keepdims=True, out=code_sums)  # whole numbers below 2^24: exact in any order
    for group, product in enumerate(made):
        np.multiply(product, scales[:, group], out=product)
        np.add(sums, product, out=sums)
        if offsets:
            np.multiply(code_sums[group], offsets[0][:, group], out=product)
            np.add(sums, product, out=sums)


def matmul_f32(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    np.matmul(ins[0], ins[1], out=out[0])


def matmul_rows(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    for row, result in zip(ins[0], out[0], strict=True):
        np.matmul(ins[1], row, out=result)


def requantise(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    sums, rows, columns = ins
    (factors,) = space.take(sums.shape)
    np.multiply(rows, columns, out=factors)
    np.copyto(out[0], sums, casting="same_kind")
    np.multiply(out[0], factors, out=out[0])


def quantise(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    (codes, scales), (x,) = out, ins
    scaled, peak, inverse = space.take(x.shape, (len(x), 1), (len(x), 1))
    if numbers:
        scales.fill(numbers[0])
        inverse.fill(ONE / np.float32(numbers[0]))
    else:
        np.abs(x, out=scaled)
        np.max(scaled, axis=1, keepdims=True, out=peak)
        loud = ~(peak <= QUIETEST)
        scales.fill(0)
        np.divide(peak, np.float32(127), out=scales, where=loud)
        inverse.fill(0)
        np.divide(np.float32(127), peak, out=inverse, where=loud)
    np.multiply(x, inverse, out=scaled)
    np.rint(scaled, out=scaled)
    np.clip(scaled, -127, 127, out=scaled)
    np.copyto(codes, scaled, casting="unsafe")


def rotate(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    (y,), (x, cosines, sines) = out, ins
    pairs = cosines.shape[1]
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if numbers[0] else (slice(pairs), slice(pairs, 2 * pairs))
    left, right = space.take((len(x), pairs), (len(x), pairs))
    np.copyto(y, x)
    np.multiply(x[:, first], cosines, out=left)
    np.multiply(x[:, second], sines, out=right)
    np.subtract(left, right, out=y[:, first])
    np.multiply(x[:, second], cosines, out=left)
    np.multiply(x[:, first], sines, out=right)
    np.add(left, right, out=y[:, second])


def _inverse_root(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    np.add(ins[0], np.float32(numbers[0]), out=out[0])
    np.sqrt(out[0], out=out[0])
    np.divide(ONE, out[0], out=out[0])


def _silu(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    (y,), (x,) = out, ins
    np.negative(x, out=y)
    np.exp(y, out=y)
    np.add(ONE, y, out=y)
    np.divide(x, y, out=y)


def _gelu(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    """As gelu_tanh of ../cpu/elementwise.py: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    (y,), (x,) = out, ins
    (half,) = space.take(x.shape)
    np.multiply(np.float32(0.044715), x, out=y)
    np.multiply(y, x, out=y)
    np.multiply(y, x, out=y)
    np.add(x, y, out=y)
    np.multiply(np.float32(np.sqrt(2 / np.pi)), y, out=y)
    np.tanh(y, out=y)
    np.add(ONE, y, out=y)
    np.multiply(np.float32(0.5), x, out=half)
    np.multiply(half, y, out=y)


def _softcap(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    cap = np.float32(numbers[0])
    if cap == 0:
        np.copyto(out[0], ins[0])
        return
    np.divide(ins[0], cap, out=out[0])
    np.tanh(out[0], out=out[0])
    np.multiply(out[0], cap, out=out[0])


def _seen(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    """The positions that a row sees: of columns; with one number of rows; with two of rows, turned into columns."""
    seen = slice(space.start, space.stop)
    match len(numbers):
        case 0:
            np.copyto(out[0], ins[0][:, seen])
        case 1:
            np.copyto(out[0], ins[0][seen])
        case _:
            np.copyto(out[0], ins[0][seen].T)


def _spread(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
    """Back to all positions, those that are not seen zero."""
    out[0].fill(0)
    np.copyto(out[0][:, space.start : space.stop], ins[0])


def _plain(ufunc: Callable[..., object]) -> Computation:
    def compute(space: Workspace, out: Sequence[Array], ins: Sequence[Array], numbers: Numbers) -> None:
        ufunc(*ins, out=out[0])

    return compute


MAP_FUNCTIONS: Mapping[str, Computation] = MappingProxyType(
    {
        "add": _plain(np.add),
        "multiply": _plain(np.multiply),
        "subtract": _plain(np.subtract),
        "divide": _plain(np.divide),
        "exp": _plain(np.exp),
        "scale": lambda space, out, ins, numbers: np.multiply(ins[0], np.float32(numbers[0]), out=out[0]),
        "convert": lambda space, out, ins, numbers: np.copyto(out[0], ins[0]),
        "inverse_root": _inverse_root,
        "silu": _silu,
        "gelu": _gelu,
        "softcap": _softcap,
        "seen": _seen,
        "spread": _spread,
    }
)
REDUCTIONS: Mapping[str, Computation] = MappingProxyType(
    {
        "max": lambda space, out, ins, numbers: np.max(ins[0], axis=-1, keepdims=True, out=out[0]),
        "sum": lambda space, out, ins, numbers: np.sum(ins[0], axis=-1, keepdims=True, out=out[0]),
        "mean": lambda space, out, ins, numbers: np.mean(ins[0], axis=-1, keepdims=True, dtype=np.float32, out=out[0]),
    }
)
