"""From a model to programs for a chip: capture, quantise, fuse, partition, tile, plan, lower.

The structure is decided first, from the architecture alone; only what fits has its weights read and rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from ..npu_backends.base import Adapter, Cost, Plan, Segment
from ..npu_backends.ir.graph import Graph
from ..npu_backends.spec import Spec
from ..shared_protocol.architecture import Architecture
from ..shared_protocol.compile_errors import CompileError
from ..shared_protocol.model import Model
from .capture.capture import capture
from .chips import CPU, NPU, chips_of, cost_on, host_beside, scratch_bytes, tiling_on, working_bytes
from .cut import fuse_and_cut
from .fidelity import fidelity, rounds_to_4_bits
from .fit import fitted
from .memory.layout import lay_out
from .memory.portfolio import plan as plan_buffers
from .partition.partition import Partition, partition
from .partition.pipeline import pipelined_seconds
from .partition.prices import computing, launching, moving
from .program import Compiled, Facts, Flash, Lowered, Program, Shape
from .quantise.constants import quantised_constants
from .quantise.gate import accept
from .quantise.layout import Scheme, layouts_of
from .quantise.quantise_graph import quantise_graph
from .smoothing import smoothed_by, smoothing_of
from .version import compiler_version

SHAPES = (Shape(32, 1), Shape(8, 8), Shape(1, 1))  # a chunk of a prompt, a draft to verify, a step of decoding
Progress = Callable[[str, int, int], None]  # what is done, how many of how many steps


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


def facts_of(
    model: Model,
    target: Spec,
    *,
    scheme: str = "w8a8",
    context: int,
    shapes: Sequence[Shape] = SHAPES,
    host: Spec | None = None,
    storage: Flash | None = None,
    smooth: str | None = None,
) -> Facts:
    """What compiling is of, and for: sequences of up to `context` tokens. `host`: the processor beside the chip; None: host_beside.
    `storage`: where weights are paged from that are more than the target's memory; None: they must fit.
    `smooth`: a text that says which sizes to move from rows to weights before both are rounded; None: none are.

    Shapes with more rows than the context are left out. Raises CompileError when none is left, for a text without tokens, and for a
    scheme that carries blocks over, which smoothing would turn into floats.
    """
    if smooth is not None and scheme != "w8a8":
        raise CompileError(
            f"smoothing is for w8a8: it makes floats of the blocks that {scheme} would carry over", hint="leave out one of both"
        )
    chosen = tuple(sorted({shape for shape in shapes if shape.rows <= context}, key=lambda shape: -shape.rows))
    if not chosen:
        raise CompileError(f"no program of {', '.join(str(shape.rows) for shape in shapes)} rows fits a context of {context}")
    beside = host_beside(target) if host is None else host
    moved = None if smooth is None else smoothing_of(model, smooth)
    return Facts(compiler_version(), model.card.name, model.card.file_hash, scheme, context, chosen, target, beside, storage, moved)


def compile_model(model: Model, facts: Facts, progress: Progress = silent, *, smooth: str | None = None) -> Compiled:
    """Compile `model`; `facts` is facts_of it, and `smooth` the text that they were made with.

    Raises CompileError for a network that cannot be captured, DoesNotFit when weights, cache and arenas are more than the target's
    memory; it says which context would fit. Raises TooInexact where weights had to be rounded to 4 bits and the text that comes of it is
    too far from the source's.
    """
    assert facts.file_hash == model.card.file_hash
    assert facts.smoothing == (None if smooth is None else smoothing_of(model, smooth))
    total = len(facts.shapes) + 1
    programs = []
    for done, shape in enumerate(facts.shapes):
        progress("graph of one row" if shape.rows == 1 else f"graph of {shape.rows} rows", done, total)
        programs.append(compile_program(model.architecture, facts, shape, model))
    programs = list(fitted(Compiled(facts, tuple(programs), {}), chips_of(facts.target, facts.host)).programs)
    source = model
    if smooth is not None:
        progress("sizes of rows over a text", len(programs), total)
        source = smoothed_by(model, smooth)
    progress("weights", len(programs), total)
    constants: dict[str, NDArray[Any]] = {}
    for program in programs:
        if {value.name for value in program.graph.constants} - constants.keys():
            constants |= quantised_constants(source, program.graph)
    if rounds_to_4_bits(model, facts):
        progress("comparison with the float32 source", len(programs), total)
        accept(fidelity(model, facts, constants))
    progress("done", total, total)
    return Compiled(facts, tuple(programs), constants)


def compile_program(architecture: Architecture, facts: Facts, shape: Shape, model: Model | None = None) -> Program:
    """One number of rows, from the architecture alone; `model` says which types its matrices have, and so which can be carried over."""
    captured = capture(architecture, rows=shape.rows, logit_rows=shape.logit_rows, context=facts.context, name=shape.name)
    scheme: Scheme = facts.scheme  # type: ignore[assignment]  # layouts_of refuses what is none
    layouts = layouts_of(captured, scheme, model, facts.target.weight_formats)
    quantised = quantise_graph(captured, scheme, layouts=layouts)
    chips = chips_of(facts.target, facts.host)
    price = computing(tiling_on)

    def cut_up(graph: Graph) -> Partition:
        return partition(graph, tuple(chips.values()), cost=price, transfer=moving(graph), launch=launching, host=CPU)

    graph, cut = fuse_and_cut(quantised, (chips[NPU], chips[CPU]), cut_up)
    on_chip = {op.name: chips[segment.chip] for segment in cut.segments for op in segment.graph.ops}
    tilings = {op.name: tiling for op in graph.ops if (tiling := tiling_on(on_chip[op.name], op))}
    staging = {op.name: working_bytes(on_chip[op.name], op, tilings.get(op.name)) for op in graph.ops}
    room: dict[str, int] = {}
    for segment in cut.segments:
        room[segment.chip] = max(room.get(segment.chip, 0), scratch_bytes(chips[segment.chip], segment, tilings))
    layout = lay_out(
        graph,
        cut.segments,
        plan_buffers,
        alignment=facts.target.alignment,
        scratch={NPU: facts.target.sram.bytes},
        staging=staging,
        room={chip: size for chip, size in room.items() if size},
        keeps=False,  # the simulated chip's operations load what they read, and store what they make
    )
    lowered = tuple(_lowered(segment, layout.plan_of(segment, tilings), chips[segment.chip]) for segment in cut.segments)
    # what a step of decoding is fed is what the step before gave
    pipelined = pipelined_seconds(cut, feedback=shape.rows == 1)
    return Program(shape, len(captured.ops), graph, layout, lowered, cut.refused, cut.seconds, pipelined)


def _lowered(segment: Segment, plan: Plan, chip: Adapter) -> Lowered:
    cost = sum((cost_on(chip, op) for op in segment.graph.ops), Cost(chip.spec.launch_cycles, 0, 0.0))
    return Lowered(segment, plan, chip.lower(segment, plan), cost, chip.spec.seconds(cost.cycles))
