"""Try an adapter: everything that the compiler and the runtime count on. `check(adapter)` says what it does not keep.

refusals      every operation that it refuses has a reason in words
numbers       every operation that it takes gives what the interpreter gives, for sizes from one row to uneven ends of every tile
places        nothing is written but what the plan gives room to, and no input but what is overwritten by its meaning
costs         positive, and never less when a size grows
artifacts     the same bytes for the same segment; torn, foreign or empty ones are refused, and so are missing constants
memory        a run keeps nothing, and what it needs beside the plan does not grow with the segment
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...shared_protocol.compile_errors import ArtifactRejected
from ..base import Adapter, Artifact, Plan, Segment, Tiling
from ..ir.graph import Graph
from ..ir.interpret import interpret
from ..ir.op import Op, flat
from ..ir.semantics import Array
from ..ir.value import Value
from ..ir.work import product_of
from .cases import ALL_SIZES, CASES, TAILS, Case, Sizes, arrays_of, graph_of
from .place import guarded, plan_of

SLACK = 4096  # bytes that Python itself may take or give back in a run


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that an adapter does not keep."""

    check: str  # one of the list above
    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.check}: {self.subject}: {self.what}"


def check(adapter: Adapter, *, tolerance: float = 0.0, sizes: Sequence[Sizes] = ALL_SIZES, seed: int = 0) -> list[Finding]:
    """All findings; an empty list is a pass. `tolerance`: how far floats may be from the interpreter's, relative to the largest of a
    result; 0 wants its bits. Codes are always exact."""
    findings: list[Finding] = []
    findings += _found("numbers", adapter.name, _takes_any(adapter, sizes))
    for case in CASES:
        for chosen in map(_possible, sizes):
            subject = f"{case.name} {_shown(chosen, case)}"
            findings += _found("numbers", subject, _try_op(adapter, case.make(chosen), tolerance, seed))
        findings += _found("costs", case.name, _costs(adapter, case))
    findings += _found("artifacts", "a segment", _artifacts(adapter))
    findings += _found("memory", "a segment", _memory(adapter))
    return findings


def _takes_any(adapter: Adapter, sizes: Sequence[Sizes]) -> Iterator[str]:
    if all(adapter.supports(case.make(_possible(chosen))) is not None for case in CASES for chosen in sizes):
        yield "it takes none of the operations that there are, so nothing was tried"


def _found(check: str, subject: str, tried: Iterator[str | Finding]) -> Iterator[Finding]:
    """Findings from their texts; an adapter that raises is one as well."""
    try:
        for what in tried:
            yield replace(what, subject=subject) if isinstance(what, Finding) else Finding(check, subject, what)
    except Exception as error:
        yield Finding(check, subject, f"what it takes gives {type(error).__name__}: {error}")


def tilings_for(adapter: Adapter, op: Op) -> list[Tiling | None]:
    """Some for an operation with a product, that a planner could have chosen."""
    products = [product for inner in flat((op,)) if (product := product_of(inner))]
    if not products:
        return [None]
    dataflows = adapter.spec.array.dataflows
    return [Tiling(dataflows[0], 4, 16, 32, "mnk"), Tiling(dataflows[-1], 3, 24, 64, "nmk"), Tiling(dataflows[0], 64, 128, 2048, "nkm")]


def _possible(sizes: Sizes) -> Sizes:
    """No more rows than positions."""
    return {**sizes, "R": min(sizes["R"], sizes["C"])}


def _shown(sizes: Sizes, case: Case) -> str:
    return ", ".join(f"{letter} {sizes[letter]}" for letter in case.sizes)


def _refused(adapter: Adapter, op: Op) -> tuple[bool, str | None]:
    """Whether an operation is refused, and what is wrong with the reason."""
    reason = adapter.supports(op)
    if reason is None:
        return False, None
    if not isinstance(reason, str) or len(reason.split()) < 3:
        return True, f"it is refused with {reason!r}, which is no reason in words"
    return True, None


def _try_op(adapter: Adapter, op: Op, tolerance: float, seed: int) -> Iterator[str | Finding]:
    refused, wrong = _refused(adapter, op)
    if wrong:
        yield Finding("refusals", "", wrong)
    if refused:
        return
    graph = graph_of(op)
    constants, inputs = arrays_of(graph, seed)
    wanted = interpret(graph, constants, inputs)
    for tiling in tilings_for(adapter, op):
        plan = plan_of(graph, {op.name: tiling} if tiling else {}, adapter.spec.alignment)
        memory, fixed = guarded(graph, plan, inputs), {name: array.copy() for name, array in constants.items()}
        handle = adapter.load(adapter.lower(Segment(graph.name, adapter.name, graph), plan), constants)
        for _ in range(2):  # a second run finds what the first one left
            for name, array in inputs.items():
                memory.buffers[name][...] = array
            adapter.run(handle, memory.buffers)
            for name, array in wanted.items():
                if what := _difference(array, memory.buffers[name], tolerance):
                    yield f"{name} {what}, tiled {tiling}"
            overwritten = {before for before, _ in graph.states}
            changed = [name for name, array in inputs.items() if name not in overwritten and not _same(array, memory.buffers[name])]
            changed += [name for name, array in constants.items() if not _same(fixed[name], array)]
            for name in changed:
                yield Finding("places", "", f"{name} is changed, which is only read")
            for arena in memory.strays():
                yield Finding("places", "", f"bytes of the arena {arena} are written that belong to no value")


def _same(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _difference(wanted: Array, found: Array, tolerance: float) -> str | None:
    if _same(wanted, found):
        return None
    if tolerance and wanted.dtype.kind == "f":
        largest = float(np.abs(wanted.astype(np.float64) - found).max())
        if largest <= tolerance * float(np.abs(wanted).max()):
            return None
    different = int((wanted != found).sum())
    return f"differs from the interpreter's in {different} of {wanted.size} places"


def _costs(adapter: Adapter, case: Case) -> Iterator[str]:
    """Every size is made larger alone, past several ends of tiles."""
    for letter in case.sizes:
        before: dict[Tiling | None, tuple[int, int, float]] = {}
        for factor in (1, 2, 5):
            step = {"K": 32, "H": TAILS["KH"], "KH": 1, "D": 4}.get(letter, 7)
            grown = {**TAILS, "C": 64, letter: (60 if letter == "C" else 0) + step * factor}
            if letter == "KH":  # as many heads share a head of keys as before
                grown["H"] = 3 * grown["KH"]
            op = case.make(grown)
            if adapter.supports(op) is not None:
                continue
            for tiling in tilings_for(adapter, op)[:2]:
                cost = adapter.cost(op, tiling)
                now = cost.cycles, cost.bytes, cost.joules
                last = before.get(tiling, (0, 0, 0.0))
                if min(now) < 0 or (min(now) == 0 and op.kind != "reshape"):
                    yield f"{_shown(grown, case)} costs {cost}"
                if any(new < old for new, old in zip(now, last, strict=True)):
                    yield f"with {letter} {grown[letter]} it costs {cost}, less than with fewer: {last}, tiled {tiling}"
                before[tiling] = now


def _chain(adapter: Adapter, length: int) -> Graph | None:
    """A segment of `length` operations that the adapter takes, each on what the one before made."""
    shape = (TAILS["R"], TAILS["K"])
    common = Value("common", shape[1:], "f32")
    makers: list[Callable[[Value, Value], Op]] = [
        lambda x, y: Op("add", (x, common), (y,)),
        lambda x, y: Op("rms_norm", (x, common), (y,), (("eps", 1e-5),)),
        lambda x, y: Op("multiply", (x, common), (y,)),
        lambda x, y: Op("silu", (x,), (y,)),
    ]
    values = [Value(f"v{number}", shape, "f32") for number in range(length + 1)]
    taken = [make for make in makers if adapter.supports(make(values[0], values[1])) is None]
    if not taken:
        return None
    ops = tuple(taken[number % len(taken)](values[number], values[number + 1]) for number in range(length))
    constants = (common,) if any(common in op.inputs for op in ops) else ()
    return Graph("chain", (values[0],), constants, ops, (values[-1],))


def _artifacts(adapter: Adapter) -> Iterator[str]:
    graph = _chain(adapter, 4)
    if graph is None:
        return
    constants, _ = arrays_of(graph, 0)
    plan, segment = plan_of(graph, {}, adapter.spec.alignment), Segment("chain", adapter.name, graph)
    whole = adapter.lower(segment, plan)
    turned = Plan(dict(reversed([*plan.placements.items()])), dict(reversed([*plan.arenas.items()])), {})
    if adapter.lower(segment, plan) != whole or adapter.lower(segment, turned) != whole:
        yield "the same segment and plan give other bytes the second time, or in another order"
    if Artifact.of(whole.data, whole.abi) != whole:
        yield "its SHA-256 is not that of its bytes"
    changed = bytes([whole.data[0] ^ 1]) + whole.data[1:]
    for name, artifact, given in (
        ("torn", replace(whole, data=whole.data[:-1]), constants),
        ("changed", replace(whole, data=changed), constants),
        ("torn, with a SHA-256 to match", Artifact.of(whole.data[: len(whole.data) // 2], whole.abi), constants),
        ("empty", Artifact.of(b"", whole.abi), constants),
        ("foreign", Artifact.of(whole.data, "another-adapter-1"), constants),
        ("of another form", Artifact.of(whole.data, f"{whole.abi}0"), constants),
        *((("whole, without its constants", whole, {}),) if constants else ()),
    ):
        try:
            adapter.load(artifact, given)
        except ArtifactRejected:
            continue
        except Exception as error:
            yield f"an artifact that is {name} raises {type(error).__name__}, not ArtifactRejected"
        else:
            yield f"an artifact that is {name} is loaded"


def _memory(adapter: Adapter) -> Iterator[str]:
    peaks = []
    for length in (4, 40):
        graph = _chain(adapter, length)
        if graph is None:
            return
        constants, inputs = arrays_of(graph, 0)
        plan = plan_of(graph, {}, adapter.spec.alignment)
        memory = guarded(graph, plan, inputs)
        handle = adapter.load(adapter.lower(Segment(graph.name, adapter.name, graph), plan), constants)
        adapter.run(handle, memory.buffers)
        peak, kept = _traced(lambda handle=handle, memory=memory: adapter.run(handle, memory.buffers))  # type: ignore[misc]
        if kept > SLACK:
            yield f"a run of {length} operations keeps {kept} bytes"
        peaks.append(peak)
    value = TAILS["R"] * TAILS["K"] * 4
    if peaks[1] - peaks[0] >= 4 * value + SLACK:
        yield f"a run of 4 operations takes {peaks[0]} bytes, one of 40 takes {peaks[1]}"


def _traced(run: Callable[[], None]) -> tuple[int, int]:
    """The most bytes that a run had taken, and those that it still has."""
    started = not tracemalloc.is_tracing()
    if started:
        tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        run()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        if started:
            tracemalloc.stop()
    return peak - before, after - before
