"""In which codes each matrix is held: by the scheme, by what its file has, and by what the target reads.

w8a8    int8, one scale an output; nothing is carried over, for no file has such scales
w4a8    blocks that a layout holds exactly are carried over, so with more than 4 bits what the file gave more; other matrices get 4 bits
        per group of 32 inputs, the embedding and the output matrix 8, which decide most of the last step
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.kinds import GROUP
from ...npu_backends.ir.op import flat
from ...npu_backends.ir.value import Value
from ...npu_backends.spec import WEIGHT_FORMATS
from ...shared_protocol.compile_errors import CompileError
from ...shared_protocol.model import Model

Scheme = Literal["w8a8", "w4a8"]


@dataclass(frozen=True, slots=True)
class Layout:
    """A weight is code * scale (+ offset) of its output, or of its output's group of 32 inputs."""

    format: str  # its name in a chip's weight_formats
    codes: Literal["i8", "u4"]
    grouped: bool
    offsets: bool


CHANNEL = Layout("int8_channel", "i8", grouped=False, offsets=False)
GROUP8 = Layout("int8_group32", "i8", grouped=True, offsets=False)
GROUP8_FROM = Layout("int8_group32", "i8", grouped=True, offsets=True)
GROUP4 = Layout("int4_group32", "u4", grouped=True, offsets=True)

# the layout that holds a type of blocks to the bit; the others have scales per 16 weights
EXACT: Mapping[str, Layout] = MappingProxyType(
    {
        **dict.fromkeys(("Q4_0", "Q4_1", "Q4_K"), GROUP4),
        **dict.fromkeys(("Q5_0", "Q8_0", "IQ4_NL", "IQ4_XS"), GROUP8),
        **dict.fromkeys(("Q5_1", "Q5_K"), GROUP8_FROM),
    }
)
RICH = ("Q6_K",)  # not held exactly, and given more bits than 4 by who made the file
ENDS = ("token_embd.weight", "output.weight")


def layouts_of(graph: Graph, scheme: Scheme, model: Model | None = None, held: Sequence[str] = WEIGHT_FORMATS) -> dict[str, Layout]:
    """The layout of every matrix of a float graph, by its name. `held` is what the target reads (spec.weight_formats); without a model
    every matrix is taken for one of floats, whatever blocks it has.

    Raises CompileError for a scheme that there is not, or whose weights the target does not read.
    """
    if scheme not in get_args(Scheme):
        raise CompileError(f"scheme must be one of {', '.join(get_args(Scheme))}, found {scheme!r:.40}")
    needed = CHANNEL if scheme == "w8a8" else GROUP4
    if needed.format not in held:
        raise CompileError(
            f"{scheme} has weights as {needed.format}; the target reads {', '.join(held)}",
            hint="choose another scheme, or a target that reads them",
        )
    types = {name: tensor.type_name for name, tensor in model.tensors.items()} if model else {}
    return {value.name: _layout(value, scheme, types.get(value.name, "F32"), held) for value in matrices(graph)}


def matrices(graph: Graph) -> list[Value]:
    """The float constants that are only ever multiplied with, or looked up in."""
    taken = {op.inputs[place].name for op in flat(graph.ops) for place in (_place(op.kind),) if place is not None}
    other = {value.name for op in flat(graph.ops) for place, value in enumerate(op.inputs) if place != _place(op.kind)}
    return [value for value in graph.constants if value.dtype == "f32" and value.name in taken - other]


def _place(kind: str) -> int | None:
    """Which input of an operation is a matrix that can be held as codes."""
    return {"linear": 1, "embed": 0}.get(kind)


def _layout(matrix: Value, scheme: Scheme, type_name: str, held: Sequence[str]) -> Layout:
    if scheme == "w8a8" or matrix.shape[1] % GROUP:
        return CHANNEL
    wanted = EXACT.get(type_name, GROUP8 if matrix.name in ENDS or type_name in RICH else GROUP4)
    return wanted if wanted.format in held else CHANNEL
