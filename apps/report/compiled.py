"""The page of `hybrid compile`: what runs where, how memory is laid out, what bounds the speed, and what a chip refused."""

from __future__ import annotations

from html import escape

from ...compiler.report import ArenaReport, CompileReport, GraphReport, OpReport
from .flow_chart import flow_chart
from .page import page, section, table, tiles
from .plan_chart import in_bytes, plan_chart
from .roofline_chart import roofline_chart
from .segments_chart import chip_colour, segments_chart

OPS_NOTE = (
    "Those that are alike in one row, the costliest first. Cycles are of the clock of the chip in that row; share is of time. "
    "Unseen are transfers beside which something is computed, or that go both ways at once: they take no time of their own."
)


def compiled_page(report: CompileReport) -> str:
    target = report.target
    said = ", ".join(f"{kind} {count}" for kind, count in target.kinds.items())
    subtitle = (
        f"{report.model} ({report.file_hash[:12]}) as {report.scheme}{_smoothed(report)}, "
        f"{report.context:,} tokens of context, for {target.name}: "
        f"{target.macs_per_cycle:,} multiply-accumulates a cycle at {target.clock_hz / 1e6:,.0f} MHz, "
        f"{target.dram_bytes_per_s / 1e9:.3g} GB/s, {in_bytes(target.sram_bytes)} on the chip. "
        f"Who says its numbers: {said} ({target.source}). Speeds are predictions of a model, not measurements."
    )
    parts = [tiles(_first(report))]
    for graph in report.graphs:
        parts += _graph_parts(report, graph)
    return page(f"{report.model} on {target.name}", subtitle, parts)


def _smoothed(report: CompileReport) -> str:
    moved = report.smoothing
    if moved is None:
        return ""
    text = f"a text of the user's ({moved.text_sha256[:12]})" if moved.own_text else "the text that comes with Hybrid"
    return f", smoothed (strength {moved.strength:g}) by {moved.tokens:,} tokens of {text}"


def _first(report: CompileReport) -> list[tuple[str, str]]:
    first = []
    for graph in report.graphs:
        share = f"{graph.tokens_per_s / graph.roofline_tokens_per_s:.0%} of its roofline" if graph.roofline_tokens_per_s else ""
        first.append((f"tokens/s, {graph.name} ({share})", f"{graph.tokens_per_s:,.1f}"))
    worst = max((arena.ratio for graph in report.graphs for arena in graph.arenas), default=1.0)
    first += [
        ("largest memory plan over its bound", f"{worst:.3f}"),
        ("weights", in_bytes(report.weights_bytes)),
        ("keys and values", in_bytes(report.kv_bytes)),
    ]
    if report.fidelity is not None:
        first.append((f"same next word as in float32, {report.fidelity.kl_mean:.3f} nats apart", f"{report.fidelity.top1:.1%}"))
    return first


def _graph_parts(report: CompileReport, graph: GraphReport) -> list[str]:
    tokens = "one token" if graph.rows == 1 else f"{graph.rows} tokens"
    facts = (
        f"A run of {tokens}: {graph.macs / 1e6:,.1f} million multiply-accumulates, {in_bytes(graph.bytes_weights)} of weights, "
        f"{graph.cycles:,} cycles of the chip, {graph.seconds * 1e3:,.3g} ms, {graph.joules * 1e3:.3g} mJ. "
        f"{graph.ops_captured} operations became {graph.ops_fused}; fusion saves {in_bytes(graph.bytes_saved_by_fusion)} of traffic."
    )
    if graph.seconds_pipelined is not None and graph.seconds_pipelined < 0.999 * graph.seconds:
        facts += f" Beside another run, one more takes {graph.seconds_pipelined * 1e3:,.3g} ms."
    if graph.stalls_seconds:
        facts += f" {graph.stalls_seconds * 1e3:,.3g} ms of it waits for weights that memory does not hold; the lanes below leave that out."
    parts = [section(f"{graph.name}: who works when", facts, segments_chart(graph))]
    if graph.flow:
        note = f"One of {graph.layers} layers that are alike, with what stands before and after them. A box is what runs as one operation."
        parts.append(section(f"{graph.name}: the graph", note, flow_chart(graph)))
    roofline = roofline_chart(graph, report.target)
    if roofline is not None:
        note = "Under the slope memory is the limit, under the flat roof arithmetic is. A dot is as large as its share of the time."
        parts.append(section(f"{graph.name}: roofline", note, roofline))
    for arena in graph.arenas:
        within = f" of {in_bytes(arena.capacity)}" if arena.capacity else ""
        proof = ", proved smallest" if arena.optimal else ""
        note = (
            f"{in_bytes(arena.size)}{within}; {in_bytes(arena.bound)} live at once at most (dashed): {arena.ratio:.3f} times the bound, "
            f"by {arena.planner}{proof}. {len(arena.buffers)} buffers."
        )
        if any(buffer.lower or buffer.upper < _steps(arena) for buffer in arena.buffers):  # else all of it is taken all the time
            parts.append(section(f"{graph.name}: memory plan, {arena.name}", note, plan_chart(arena)))
    parts.append(section(f"{graph.name}: operations and tiles", OPS_NOTE, _ops(graph)))
    if graph.refused:
        rows = [
            (f"<code>{escape(one.kind)}</code>", escape(one.chip), str(one.count), f"<code>{escape(one.first)}</code>", escape(one.reason))
            for one in graph.refused
        ]
        head = ("operation", "chip", "times", "first", "why not")
        parts.append(
            section(f"{graph.name}: refused", "What the chip does not take runs on the processor.", table(head, rows, numbers=(2,)))
        )
    return parts


def _steps(arena: ArenaReport) -> int:
    return max(buffer.upper for buffer in arena.buffers)


def _ops(graph: GraphReport) -> str:
    head = (
        "operation",
        "chip",
        "times",
        "m x n x k",
        "tile",
        "dataflow",
        "utilisation",
        "cycles",
        "share",
        "bytes moved",
        "of it unseen",
        "over the least",
        *(["waits, ms"] if graph.stalls_seconds else []),
    )
    total = sum(op.seconds for op in graph.ops) or 1.0
    ops = sorted(graph.ops, key=lambda op: -op.seconds)
    rows = [_op_row(op, op.seconds / total) + ([f"{op.stalls_seconds * 1e3:.3f}"] if graph.stalls_seconds else []) for op in ops]
    return table(head, rows, numbers=(2, 6, 7, 8, 9, 10, 11, 12))


def _op_row(op: OpReport, share: float) -> list[str]:
    name = " + ".join(op.body) if op.body else op.kind
    return [
        f"<code>{escape(name)}</code>",
        f'<span class="badge" style="background:{chip_colour(op.chip)}">{escape(op.chip)}</span>',
        str(op.count),
        f"{op.m} x {op.n} x {op.k}" if op.m is not None else "",
        " x ".join(map(str, op.tile)) if op.tile else "",
        f"{op.dataflow} {op.order or ''}" if op.dataflow else "",
        f"{op.utilisation:.1%}" if op.utilisation is not None else "",
        f"{op.cycles:,}",
        f"{share:.1%}",
        in_bytes(op.bytes),
        f"{op.hidden_dma:.0%}" if op.hidden_dma is not None else "",
        f"{op.bytes / op.bound_bytes:.2f}" if op.bound_bytes else "",
    ]
