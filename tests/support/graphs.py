"""Random graphs of every kind of operation, and arrays to run them on: small, legal, and as tangled as the number of operations allows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.op import Attribute, Op, flat
from hybrid.npu_backends.ir.semantics import Array
from hybrid.npu_backends.ir.value import ARRAYS, DType, Value

WIDTHS = (32, 64)  # whole groups of weights
HEADS, DIM = 2, 16
POSITIONS = 5  # of a cache
WORDS = 7


@dataclass(slots=True)
class Growing:
    """A graph as it grows. `free` holds what may still be read: a cache that was overwritten is not in it."""

    random: random.Random
    rows: int
    inputs: list[Value] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    free: list[Value] = field(default_factory=list)
    pairs: list[tuple[Value, Value]] = field(default_factory=list)  # codes and scales of quantised rows
    states: list[tuple[str, str]] = field(default_factory=list)

    def input(self, shape: tuple[int, ...], dtype: DType) -> Value:
        value = Value(f"in.{len(self.inputs)}", shape, dtype)
        self.inputs.append(value)
        return value

    def constant(self, shape: tuple[int, ...], dtype: DType = "f32") -> Value:
        """A new one, or one that is there already."""
        same = [value for value in self.constants if (value.shape, value.dtype) == (shape, dtype)]
        if same and self.random.random() < 0.3:
            return self.random.choice(same)
        value = Value(f"weights.{len(self.constants)}", shape, dtype)
        self.constants.append(value)
        return value

    def value(self, fits: Callable[[Value], bool], shape: tuple[int, ...]) -> Value:
        """What was made, the newest more often than the rest; where nothing fits, a new input."""
        there = [value for value in self.free if fits(value)]
        if not there:
            there = [self.input(shape, "f32")]
            self.free += there
        return there[-1] if self.random.random() < 0.5 else self.random.choice(there)

    def rows_of(self, width: int | None = None) -> Value:
        wanted = (width,) if width else WIDTHS
        return self.value(lambda v: v.dtype == "f32" and len(v.shape) == 2 and v.shape[1] in wanted, (self.rows, wanted[0]))

    def heads(self) -> Value:
        return self.value(lambda v: v.dtype == "f32" and v.shape == (self.rows, HEADS, DIM), (self.rows, HEADS, DIM))

    def weights_of_positions(self) -> Value:
        return self.value(lambda v: v.dtype == "f32" and v.shape == (self.rows, HEADS, POSITIONS), (self.rows, HEADS, POSITIONS))

    def cache(self) -> Value:
        there = [value for value in self.free if value.shape[1:] == (POSITIONS, DIM)]
        if not there or self.random.random() < 0.2:
            there = [self.input((self.random.choice((1, 2)), POSITIONS, DIM), self.random.choice(("f16", "f32")))]
            self.free += there
        return self.random.choice(there)

    def index(self, name: str) -> Value:
        """position, ids or index: one for the graph."""
        shape = {"position": (1,), "ids": (self.rows,), "index": (2,)}[name]
        value = Value(name, shape, "i32")
        if value not in self.inputs:
            self.inputs.append(value)
        return value

    def op(
        self, kind: str, inputs: Sequence[Value], made: Sequence[tuple[tuple[int, ...], DType]], **attributes: Attribute
    ) -> tuple[Value, ...]:
        outputs = tuple(Value(f"{kind}.{len(self.ops)}.{number}", *one) for number, one in enumerate(made))
        self.ops.append(Op(kind, tuple(inputs), outputs, tuple(sorted(attributes.items()))))
        self.free += [value for value in outputs if value.dtype in ("f32", "f16")]
        return outputs


def _linear(g: Growing) -> None:
    x, outputs = g.rows_of(), g.random.choice(WIDTHS)
    g.op("linear", [x, g.constant((outputs, x.shape[1]))], [((x.shape[0], outputs), "f32")])


def _quantise(g: Growing) -> None:
    x = g.rows_of()
    attributes: dict[str, Attribute] = {"scale": 0.05} if g.random.random() < 0.3 else {}
    codes, scales = g.op("quantise", [x], [(x.shape, "i8"), (x.shape[:1], "f32")], **attributes)
    g.pairs.append((codes, scales))
    g.free.remove(scales)


def _linear_i8(g: Growing) -> None:
    if not g.pairs:
        _quantise(g)
    (codes, scales), outputs = g.random.choice(g.pairs), g.random.choice(WIDTHS)
    weights = (g.constant((outputs, codes.shape[1]), "i8"), g.constant((outputs,)))
    g.op("linear_i8", [codes, scales, *weights], [((codes.shape[0], outputs), "f32")])


def _linear_g32(g: Growing) -> None:
    if not g.pairs:
        _quantise(g)
    (codes, scales), outputs = g.random.choice(g.pairs), g.random.choice(WIDTHS)
    groups = [g.constant((outputs, codes.shape[1] // 32)) for _ in range(g.random.choice((1, 2)))]
    weights = g.constant((outputs, codes.shape[1]), g.random.choice(("i8", "u4")))
    g.op("linear_g32", [codes, scales, weights, *groups], [((codes.shape[0], outputs), "f32")])


def _embed(g: Growing) -> None:
    width = g.random.choice(WIDTHS)
    made: list[tuple[tuple[int, ...], DType]] = [((g.rows, width), "f32")]
    kind = g.random.choice(("embed", "embed_i8", "embed_g32"))
    if kind == "embed":
        table = [g.constant((WORDS, width), g.random.choice(("f32", "f16")))]
    elif kind == "embed_i8":
        table = [g.constant((WORDS, width), "i8"), g.constant((WORDS,))]
    else:
        groups = [g.constant((WORDS, width // 32)) for _ in range(g.random.choice((1, 2)))]
        table = [g.constant((WORDS, width), g.random.choice(("i8", "u4"))), *groups]
    g.op(kind, [*table, g.index("ids")], made)


def _norm(g: Growing) -> None:
    x = g.random.choice((g.rows_of, g.heads))()
    g.op("rms_norm", [x, g.constant(x.shape[-1:])], [(x.shape, "f32")], eps=1e-5)


def _pair(g: Growing) -> None:
    x = g.random.choice((g.rows_of, g.heads))()
    other = g.value(lambda v: v.dtype == "f32" and v.shape == x.shape, x.shape)
    y = g.constant(x.shape[-1:]) if g.random.random() < 0.2 else other
    g.op(g.random.choice(("add", "multiply")), [x, y], [(x.shape, "f32")])


def _activation(g: Growing) -> None:
    x, kind = g.rows_of(), g.random.choice(("silu", "gelu", "softcap"))
    attributes: dict[str, Attribute] = {"cap": 3.0} if kind == "softcap" else {}
    g.op(kind, [x], [(x.shape, "f32")], **attributes)


def _reshape(g: Growing) -> None:
    if g.random.random() < 0.5:
        x = g.rows_of(HEADS * DIM)
        if x.shape[0] == g.rows:
            g.op("reshape", [x], [((g.rows, HEADS, DIM), "f32")])
    else:
        g.op("reshape", [g.heads()], [((g.rows, HEADS * DIM), "f32")])


def _gather(g: Growing) -> None:
    x = g.value(lambda v: v.dtype == "f32" and len(v.shape) == 2 and v.shape[0] == g.rows, (g.rows, WIDTHS[0]))
    g.op("gather", [x, g.index("index")], [((2, x.shape[1]), "f32")])


def _rotary(g: Growing) -> None:
    tables = [g.constant((POSITIONS, DIM // 2)), g.constant((POSITIONS, DIM // 2))]
    g.op("rotary", [g.heads(), *tables, g.index("position")], [((g.rows, HEADS, DIM), "f32")], interleaved=g.random.choice((0, 1)))


def _cache_write(g: Growing) -> None:
    """Of an input it is the change of a state; of anything else, of memory that nothing reads any more."""
    there = [v for v in g.free if v.shape == (HEADS, POSITIONS, DIM)]
    cache = g.random.choice(there) if there else g.input((HEADS, POSITIONS, DIM), "f16")
    (after,) = g.op("cache_write", [cache, g.heads(), g.index("position")], [(cache.shape, cache.dtype)])
    g.free = [value for value in g.free if value != cache]
    if cache in g.inputs:
        g.states.append((cache.name, after.name))
    else:  # the same memory, written once more: the state's end is the last write
        g.states = [(before, after.name if old == cache.name else old) for before, old in g.states]


def _scores(g: Growing) -> None:
    cache, window = g.cache(), g.random.choice((0, 2))
    cap: dict[str, Attribute] = {"softcap": 2.0} if g.random.random() < 0.3 else {}
    made: tuple[tuple[int, ...], DType] = ((g.rows, HEADS, POSITIONS), "f32")
    (scores,) = g.op("scores", [g.heads(), cache, g.index("position")], [made], scale=0.25, window=window, **cap)
    if g.random.random() < 0.7:
        g.op("softmax", [scores, g.index("position")], [made], window=window)
        if g.random.random() < 0.8:
            _mix(g)


def _softmax(g: Growing) -> None:
    x = g.weights_of_positions()
    g.op("softmax", [x, g.index("position")], [(x.shape, "f32")], window=g.random.choice((0, 2)))


def _mix(g: Growing) -> None:
    weights, cache = g.weights_of_positions(), g.cache()
    g.op("mix", [weights, cache, g.index("position")], [((g.rows, HEADS, DIM), "f32")], window=g.random.choice((0, 2)))


MAKERS = (
    *(_linear, _linear_i8, _linear_g32, _embed, _norm, _quantise, _pair, _pair, _activation),
    *(_reshape, _gather, _rotary, _cache_write, _scores, _softmax, _mix),
)


def random_graph(source: random.Random, ops: int, name: str = "random") -> Graph:
    """A graph of `ops` operations, or up to three more where the last ones come together. What nobody reads is an output, and so is some
    of the rest. From hypothesis: `random_graph(data.draw(st.randoms(use_true_random=False)), data.draw(st.integers(1, 20)))`.
    """
    g = Growing(source, rows=source.choice((1, 3)))
    while len(g.ops) < ops:
        source.choice(MAKERS)(g)
    read = {value.name for op in g.ops for value in op.inputs}
    ends = {after for _, after in g.states}
    made = [value for op in g.ops for value in op.outputs]
    overwritten = {op.inputs[0].name for op in g.ops if op.kind == "cache_write"}
    outputs = [v for v in made if v.name in ends or v.name not in read or (v.name not in overwritten and source.random() < 0.1)]
    return Graph(name, tuple(g.inputs), tuple(g.constants), tuple(g.ops), tuple(outputs), tuple(g.states))


def random_arrays(graph: Graph, seed: int = 0) -> tuple[dict[str, Array], dict[str, Array]]:
    """Constants and inputs for it, at a position where all rows have a place in the caches."""
    rng = np.random.default_rng(seed)
    rows = next((op.inputs[0].shape[0] for op in flat(graph.ops) if op.kind == "gather"), 1)

    def array(value: Value) -> Array:
        if value.dtype == "i32":
            limit = {"position": POSITIONS - 3 + 1, "ids": WORDS, "index": rows}[value.name]
            return rng.integers(0, limit, value.shape).astype(np.int32)
        if value.dtype in ("i8", "u4"):
            low, high = (-127, 128) if value.dtype == "i8" else (0, 16)
            return rng.integers(low, high, value.shape).astype(ARRAYS[value.dtype])
        return (0.3 * rng.standard_normal(value.shape)).astype(ARRAYS[value.dtype])

    return {value.name: array(value) for value in graph.constants}, {value.name: array(value) for value in graph.inputs}
