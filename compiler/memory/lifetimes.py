"""From a graph cut into segments to buffers: what lives when, which bytes are shared on purpose, and in which memory it may stand.

    step        0      1      2      3            one operation each, through all segments
    ids       |================================|  an input of the graph is kept through the run, an output until after it
    hidden    |=============|                     from the step that makes it to the last that reads it
    turned           |======|                     a reshape: a view of `hidden`
    keys      |================================|  a state: in an arena of its own, which every run finds as the last one left it

Constants stand in none of the arenas, and what is made inside a fused operation has no place at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ...npu_backends.base import Segment
from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.kinds import KINDS
from ...npu_backends.ir.op import Op
from ...npu_backends.ir.value import Value
from .alias import InPlace, View
from .buffer import Buffer

STATES, OUTSIDE, ON_CHIP = "kv", "dram", "sram"  # the arenas: what outlasts a run, what lies outside of the chip, what lies in it
TILES = "%tiles"  # ends the id of what an operation moves tiles through; no value's name has a per cent sign
ELEMENT_BY_ELEMENT = ("add", "multiply", "silu", "gelu", "softcap")  # an element of the output needs that element of the inputs alone


@dataclass(frozen=True, slots=True)
class Needs:
    """What is asked of one arena: the arguments of `merge`."""

    buffers: tuple[Buffer, ...] = ()
    views: tuple[View, ...] = ()
    pairs: tuple[InPlace, ...] = ()


def room_of(chip: str) -> str:
    """The arena that the adapter of a chip computes in, beside the values."""
    return f"{chip} scratch"


def states_of(graph: Graph, alignment: int) -> Needs:
    """All states side by side, as every graph over the same states lays them out; the state after a run is a view of the one before."""
    values = {value.name: value for value in graph.inputs}
    buffers = [Buffer(name, 0, 1, values[before].bytes, alignment) for before, after in graph.states for name in (before, after)]
    return Needs(tuple(buffers), tuple(View(before, after) for before, after in graph.states))


def lifetimes(
    graph: Graph,
    segments: Sequence[Segment],
    *,
    alignment: int,
    scratch: Collection[str] = (),
    outside: Collection[str] = (),
    staging: Mapping[str, int] | None = None,
) -> Mapping[str, Needs]:
    """What `segments`, which hold all operations of `graph` in a running order, ask of the arenas beside the states.

    `scratch`: the chips in whose own memory may stand what never leaves a segment; `outside`: values that may not, for want of room.
    `staging`: bytes on the chip that an operation, by its name, moves tiles through while it runs: operations do
    not overlap.
    """
    steps = [(op, segment) for segment in segments for op in segment.graph.ops]
    end = len(steps) + 1  # whoever called reads the outputs in a step of their own
    apart = {value.name for value in graph.constants} | {name for pair in graph.states for name in pair}
    owners = _owners(steps, apart)
    values, born, dies, users = _lives(graph, steps, apart)
    pinned = {value.name for value in (*graph.inputs, *graph.outputs)} - apart
    dies |= dict.fromkeys(pinned, end)
    groups: dict[str, list[str]] = {}
    for name in values:
        groups.setdefault(owners.get(name, name), []).append(name)
    arenas: dict[str, list[str]] = {ON_CHIP: [], OUTSIDE: []}
    for owner, members in groups.items():
        used_by = {id(segment): segment for name in members for segment in users[name]}.values()
        chips = {segment.chip for segment in used_by}
        stays = len(used_by) == 1 and chips <= set(scratch) and not pinned & set(members) and owner not in outside
        arenas[ON_CHIP if stays else OUTSIDE] += members
    pairs = [pair for op, _ in steps for pair in overwritable(op) if _alone(pair.input, op, owners)]
    needs = {}
    for arena, names in arenas.items():
        here = set(names)
        buffers = [Buffer(name, born[name], dies[name], values[name].bytes, alignment) for name in names]
        if arena == ON_CHIP:
            buffers += _staged(steps, staging or {}, alignment)
        views = tuple(View(owners[name], name) for name in names if name in owners)
        needs[arena] = Needs(tuple(buffers), views, tuple(pair for pair in pairs if {pair.input, pair.output} <= here))
    return needs


def overwritable(op: Op) -> list[InPlace]:
    """Outputs that may be written over an input: computed element by element, on the way from that input to them and nowhere else."""
    body = op.body or (op,)
    found: dict[str, InPlace] = {}  # by output: one input at most
    for value in op.inputs:
        readers = [number for number, inner in enumerate(body) if value in inner.inputs]
        made = value
        for inner in body[readers[0] :] if len(readers) == 1 else ():
            if inner.kind not in ELEMENT_BY_ELEMENT or made not in inner.inputs:
                break
            (made,) = inner.outputs
            if (made.shape, made.dtype) != (value.shape, value.dtype):  # a vector that is added to every row is smaller than the sum
                break
            if made in op.outputs:
                found.setdefault(made.name, InPlace(value.name, made.name))
                break
    return list(found.values())


def _alone(name: str, op: Op, owners: Mapping[str, str]) -> bool:
    """Whether no other input of the operation is the same bytes."""
    owner = owners.get(name, name)
    return sum(owners.get(value.name, value.name) == owner for value in op.inputs) == 1


def _owners(steps: Sequence[tuple[Op, Segment]], apart: Collection[str]) -> dict[str, str]:
    """Of every view the value whose bytes it is: of a reshape its input, of what is overwritten the value before."""
    owners: dict[str, str] = {}
    for op, _ in steps:
        kind = KINDS.get(op.kind)
        if kind is None or op.name in apart:
            continue
        place = 0 if kind.view else kind.overwrites
        if place is not None and op.inputs[place].name not in apart:
            of = op.inputs[place].name
            owners[op.name] = owners.get(of, of)
    return owners


def _lives(
    graph: Graph, steps: Sequence[tuple[Op, Segment]], apart: Collection[str]
) -> tuple[dict[str, Value], dict[str, int], dict[str, int], dict[str, list[Segment]]]:
    """Of every value to be placed: itself, its birth, the step after its last use, and the segments that make or read it."""
    values = {value.name: value for value in graph.inputs if value.name not in apart}
    born = dict.fromkeys(values, 0)
    dies = dict.fromkeys(values, 1)
    users: dict[str, list[Segment]] = {name: [] for name in values}
    for step, (op, segment) in enumerate(steps):
        for value in op.outputs:
            if value.name not in apart:
                values[value.name] = value
                born[value.name] = step
                users[value.name] = []
        for value in (*op.inputs, *op.outputs):
            if value.name in values:
                dies[value.name] = step + 1
                users[value.name].append(segment)
    return values, born, dies, users


def _staged(steps: Sequence[tuple[Op, Segment]], staging: Mapping[str, int], alignment: int) -> list[Buffer]:
    return [
        Buffer(f"{op.name}{TILES}", step, step + 1, staging[op.name], alignment)
        for step, (op, _) in enumerate(steps)
        if staging.get(op.name)
    ]
