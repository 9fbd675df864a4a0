"""A float graph with its matrix products in integers.

    normed ─┬─ linear(q) ─                normed ── quantise ─┬─ linear_i8(q codes, q scales) ─
            ├─ linear(k) ─       ->                           ├─ linear_i8(k codes, k scales) ─
            └─ linear(v) ─                                    └─ linear_i8(v codes, v scales) ─

The constant NAME becomes NAME.codes, NAME.scales and, where the layout has them, NAME.offsets. Rows x become x.codes and x.scales, once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.kinds import GROUP
from ...npu_backends.ir.op import Op
from ...npu_backends.ir.value import Value
from ...shared_protocol.compile_errors import CompileError
from .layout import Layout, Scheme, layouts_of


def quantise_graph(
    graph: Graph, scheme: Scheme, *, layouts: Mapping[str, Layout] | None = None, static: Mapping[str, float] | None = None
) -> Graph:
    """The graph with the matrices of `layouts` (see layouts_of; None: as from a model of floats) as codes.

    `static` has the scales of rows by their value's name (see static_scales); without it each row has its own. Structure only: graphs that
    shared constants still do. Raises CompileError for rows without a static scale, and for a graph that has been fused.
    """
    layouts = layouts_of(graph, scheme) if layouts is None else layouts
    if fused := [op for op in graph.ops if op.kind == "fused"]:
        raise CompileError(f"{graph.name} was fused before it was quantised: {fused[0].name}", hint="quantise first")
    parts = {value.name: parts_of(value, layouts[value.name]) for value in graph.constants if value.name in layouts}
    rows: dict[str, tuple[Value, Value]] = {}
    ops: list[Op] = []
    for op in graph.ops:
        if op.kind == "embed" and op.inputs[0].name in parts:
            table, ids = op.inputs
            kind = "embed_g32" if layouts[table.name].grouped else "embed_i8"
            ops.append(Op(kind, (*parts[table.name], ids), op.outputs))
        elif op.kind == "linear" and op.inputs[1].name in parts:
            x, matrix = op.inputs
            if x.name not in rows:
                ops.append(_quantise(x, static))
                codes, scales = ops[-1].outputs
                rows[x.name] = (codes, scales)
            kind = "linear_g32" if layouts[matrix.name].grouped else "linear_i8"
            ops.append(Op(kind, (*rows[x.name], *parts[matrix.name]), op.outputs))
        else:
            ops.append(op)
    constants = tuple(part for value in graph.constants for part in parts.get(value.name, (value,)))
    return dataclasses.replace(graph, constants=constants, ops=tuple(ops))


def parts_of(matrix: Value, layout: Layout) -> tuple[Value, ...]:
    """Codes, scales and perhaps offsets of a matrix."""
    outputs, inputs = matrix.shape
    each = (outputs, inputs // GROUP) if layout.grouped else (outputs,)
    codes, scales = Value(f"{matrix.name}.codes", matrix.shape, layout.codes), Value(f"{matrix.name}.scales", each, "f32")
    return (codes, scales, Value(f"{matrix.name}.offsets", each, "f32")) if layout.offsets else (codes, scales)


def _quantise(x: Value, static: Mapping[str, float] | None) -> Op:
    outputs = Value(f"{x.name}.codes", x.shape, "i8"), Value(f"{x.name}.scales", x.shape[:1], "f32")
    if static is None:
        return Op("quantise", (x,), outputs)
    if x.name not in static:
        raise CompileError(f"there is no static scale for {x.name}", hint="observe the graph of the same model")
    return Op("quantise", (x,), outputs, (("scale", static[x.name]),))
