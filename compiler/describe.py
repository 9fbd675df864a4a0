"""What was compiled, as a report: every operation asked once more for its price, and those that are alike put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..npu_backends.base import Adapter, Tiling
from ..npu_backends.ir.op import Op, flat
from ..npu_backends.ir.work import Work, product_of, work_of
from ..npu_backends.spec import NUMBERS, Spec
from ..npu_backends.systolic.gemm import Gemm
from ..npu_backends.systolic.io_bound import io_bound_bytes
from ..npu_backends.systolic.roofline import dram_bytes_per_second
from .chips import CPU, NPU, chips_of, hidden_dma
from .chips import dram_bytes_per_second as outside_bytes_per_second
from .fuse.saved import saved
from .memory.layout import Layout
from .program import Compiled, Program, Shape, Smoothing
from .quantise.gate import Agreement
from .report import (
    ArenaReport,
    ArtifactReport,
    CompileReport,
    FidelityReport,
    FlowReport,
    GraphReport,
    OpReport,
    PlacedReport,
    RefusalReport,
    SegmentReport,
    SmoothingReport,
    TargetReport,
)


def describe(compiled: Compiled, artifact: ArtifactReport | None, fidelity: Agreement | None = None) -> CompileReport:
    facts = compiled.facts
    chips = chips_of(facts.target, facts.host)
    return CompileReport(
        model=facts.model,
        file_hash=facts.file_hash,
        scheme=facts.scheme,
        context=facts.context,
        target=_target(facts.target),
        host=_target(facts.host),
        weights_bytes=compiled.weights_bytes,
        kv_bytes=compiled.arenas.get("kv", 0),
        fidelity=FidelityReport(fidelity.tokens, fidelity.kl_mean, fidelity.kl_p99, fidelity.top1) if fidelity else None,
        graphs=tuple(_graph(program, chips, facts.target) for program in compiled.programs),
        artifact=artifact,
        smoothing=_smoothing(facts.smoothing),
    )


def _smoothing(moved: Smoothing | None) -> SmoothingReport | None:
    return SmoothingReport(moved.strength, moved.tokens, moved.text_sha256, moved.own_text) if moved else None


def _target(spec: Spec) -> TargetReport:
    return TargetReport(
        name=spec.name,
        source=spec.source,
        kind=spec.kind,
        kinds=dict(sorted(Counter(spec.said_by(key).kind for key in NUMBERS).items())),
        clock_hz=spec.clock_hz,
        macs_per_cycle=spec.array.macs_per_cycle,
        dram_bytes_per_s=dram_bytes_per_second(spec),
        sram_bytes=spec.sram.bytes,
        dram_bytes=spec.dram.bytes,
    )


def _graph(program: Program, chips: dict[str, Adapter], target: Spec) -> GraphReport:
    works = [work_of(op) for op in program.graph.ops]
    macs, weights = sum(work.macs for work in works), sum(work.bytes_weights for work in works)
    rows = program.shape.rows
    # beside a small chip the processor is the faster one, and its way to the memory does not lead through the chip's
    peak = max(chip.spec.peak_macs_per_second for chip in chips.values())
    pace = max(dram_bytes_per_second(target), outside_bytes_per_second(chips[CPU].spec))
    return GraphReport(
        name=_name(program.shape),
        rows=rows,
        ops_captured=program.captured,
        ops_fused=len(program.graph.ops),
        macs=macs,
        bytes_weights=weights,
        cycles=program.cost_on(NPU).cycles,
        seconds=program.seconds,
        seconds_pipelined=program.pipelined,
        stalls_seconds=program.paging.stalls / target.clock_hz if program.paging else 0.0,
        joules=sum(lowered.cost.joules for lowered in program.segments),
        tokens_per_s=rows / program.seconds,
        roofline_tokens_per_s=rows / max(macs / peak, _least_bytes(works) / pace),
        bytes_saved_by_fusion=sum(one.bytes for one in saved(program.graph)),
        flow=_flow(program),
        layers=len(_starts(program.graph.ops)),
        segments=tuple(
            SegmentReport(
                name=lowered.segment.name,
                chip=lowered.segment.chip,
                ops=len(lowered.segment.graph.ops),
                cycles=lowered.cost.cycles,
                seconds=lowered.seconds,
                bytes=lowered.cost.bytes,
                joules=lowered.cost.joules,
            )
            for lowered in program.segments
        ),
        ops=_alike(program, chips, target),
        refused=_refused(program),
        arenas=_arenas(program.layout),
    )


def _name(shape: Shape) -> str:
    if shape.rows == 1:
        return "decode"
    return "prefill" if shape.logit_rows < shape.rows else "verify"


def _least_bytes(works: Sequence[Work]) -> int:
    """All weights, and the cache: what a run cannot do without reading."""
    return sum(work.bytes_weights + (work.bytes_in if work.product and not work.bytes_weights else 0) for work in works)


def _layer_of(op: Op) -> str | None:
    """`7` of blk.7.attn_q: the layer whose weights it reads."""
    names = [value.name.split(".") for inner in flat((op,)) for value in inner.inputs]
    return next((parts[1] for parts in names if parts[0] == "blk"), None)


def _flow(program: Program) -> tuple[FlowReport, ...]:
    """What stands before the layers, one layer from their middle, since the first and the last border on something else, and what stands
    after them."""
    chip_of = {op.name: lowered.segment.chip for lowered in program.segments for op in lowered.segment.graph.ops}
    ops, starts = program.graph.ops, _starts(program.graph.ops)
    middle = len(starts) // 2
    ends = [*starts[1:], _last(ops) + 1]
    shown = (*ops[: starts[0]], *ops[starts[middle] : ends[middle]], *ops[ends[-1] :]) if starts else ops
    return tuple(
        FlowReport(op.name, op.kind, tuple(inner.kind for inner in op.body), chip_of[op.name], op.outputs[0].shape) for op in shown
    )


def _starts(ops: Sequence[Op]) -> list[int]:
    """Where each layer begins: at the first operation that reads weights of its own."""
    found: dict[str, int] = {}
    for at, op in enumerate(ops):
        if (layer := _layer_of(op)) is not None:
            found.setdefault(layer, at)
    return list(found.values())


def _last(ops: Sequence[Op]) -> int:
    return max(at for at, op in enumerate(ops) if _layer_of(op) is not None)


def _alike(program: Program, chips: dict[str, Adapter], target: Spec) -> tuple[OpReport, ...]:
    groups: dict[object, tuple[Op, str, Tiling | None, int, int]] = {}
    waits = program.paging.stalls_by_op() if program.paging else {}
    for lowered in program.segments:
        for op in lowered.segment.graph.ops:
            chip, tiling = lowered.segment.chip, lowered.plan.tilings.get(op.name)
            shapes = tuple((value.shape, value.dtype) for inner in flat((op,)) for value in (*inner.inputs, *inner.outputs))
            key = (op.kind, tuple(inner.kind for inner in flat((op,))), shapes, chip, tiling)
            first, *_, count, stalls = groups.get(key, (op, chip, tiling, 0, 0))
            groups[key] = (first, chip, tiling, count + 1, stalls + waits.get(op.name, 0))
    return tuple(_op(op, chips[chip], tiling, count, stalls / target.clock_hz) for op, chip, tiling, count, stalls in groups.values())


def _op(op: Op, chip: Adapter, tiling: Tiling | None, count: int, stalls_seconds: float) -> OpReport:
    work, cost = work_of(op), chip.cost(op, tiling)
    product = work.product
    bound = used = None
    weights = max(
        (work_of(inner).bytes_weights for inner in flat((op,)) if product is not None and product_of(inner) == product), default=0
    )
    if product is not None and weights:  # in attention there are none: both sides change
        gemm = Gemm(product.m, product.n, product.k, weight_bits=8 * weights / (product.n * product.k))
        bound = io_bound_bytes(gemm, chip.spec.sram.bytes) * count
    if product is not None and tiling is not None and cost.cycles:
        used = work.macs / (cost.cycles * chip.spec.array.macs_per_cycle)
    return OpReport(
        kind=op.kind,
        body=tuple(inner.kind for inner in op.body),
        first=op.name,
        count=count,
        chip=chip.name,
        cycles=cost.cycles * count,
        seconds=chip.spec.seconds(cost.cycles) * count,
        bytes=cost.bytes * count,
        bound_bytes=bound,
        macs=work.macs * count,
        m=product.m if product else None,
        n=product.n if product else None,
        k=product.k if product else None,
        dataflow=tiling.dataflow if tiling else None,
        tile=(tiling.tm, tiling.tn, tiling.tk) if tiling else None,
        order=tiling.order if tiling else None,
        utilisation=used,
        hidden_dma=hidden_dma(chip, op, tiling),
        stalls_seconds=stalls_seconds,
    )


def _refused(program: Program) -> tuple[RefusalReport, ...]:
    """The same reason for the same kind once, with how often."""
    kinds = {op.name: " + ".join(inner.kind for inner in op.body or (op,)) for op in program.graph.ops}
    groups: dict[tuple[str, str, str], list[str]] = {}
    for one in program.refused:
        groups.setdefault((kinds[one.op], one.chip, one.reason), []).append(one.op)
    return tuple(RefusalReport(*key, len(names), names[0]) for key, names in groups.items())


def _arenas(layout: Layout) -> tuple[ArenaReport, ...]:
    reports = []
    for name, plan in layout.plans.items():
        buffers = tuple(PlacedReport(one.id, one.lower, one.upper, plan.offsets[one.id], one.size) for one in plan.buffers)
        reports.append(ArenaReport(name, plan.size, plan.bound, plan.ratio, plan.planner, plan.optimal, layout.capacities[name], buffers))
    return tuple(reports)
