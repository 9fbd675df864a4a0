"""Operations of every kind, of any sizes, and arrays for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..ir.graph import Graph
from ..ir.kinds import GROUP
from ..ir.op import Attribute, Op, fused
from ..ir.semantics import Array
from ..ir.value import ARRAYS, DType, Value

Sizes = Mapping[
    str, int
]  # by the letters of ../ir/kinds.py: R rows, K inputs, N outputs, H heads, KH of keys, D, P pairs, C positions, V, L
SMALL: Sizes = {"R": 1, "K": 32, "N": 1, "H": 2, "KH": 1, "D": 8, "P": 4, "C": 5, "V": 7, "L": 1}
TAILS: Sizes = {"R": 5, "K": 96, "N": 37, "H": 6, "KH": 2, "D": 12, "P": 5, "C": 19, "V": 23, "L": 3}
DEEP: Sizes = {"R": 9, "K": 1056, "N": 50, "H": 4, "KH": 4, "D": 32, "P": 16, "C": 70, "V": 11, "L": 9}
ALL_SIZES = (SMALL, TAILS, DEEP)


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of operation in one of its forms. `sizes`: those that it has."""

    name: str
    sizes: tuple[str, ...]
    make: Callable[[Sizes], Op]


def _op(kind: str, inputs: list[tuple[str, tuple[int, ...], DType]], made: tuple[int, ...], **attributes: Attribute) -> Op:
    read = tuple(Value(name, shape, dtype) for name, shape, dtype in inputs)
    dtype: DType = read[0].dtype if kind in ("cache_write", "reshape") else "f32"
    return Op(kind, read, (Value("y", made, dtype),), tuple(sorted(attributes.items())))


def _quantise(s: Sizes, x: str = "x", **attributes: Attribute) -> Op:
    outputs = Value("codes", (s["R"], s["K"]), "i8"), Value("scales", (s["R"],), "f32")
    return Op("quantise", (Value(x, (s["R"], s["K"]), "f32"),), outputs, tuple(attributes.items()))


def _linear_i8(s: Sizes) -> Op:
    rows, inputs, outputs = s["R"], s["K"], s["N"]
    weights: list[tuple[str, tuple[int, ...], DType]] = [("weights", (outputs, inputs), "i8"), ("weight_scales", (outputs,), "f32")]
    return _op("linear_i8", [("codes", (rows, inputs), "i8"), ("scales", (rows,), "f32"), *weights], (rows, outputs))


def _linear_g32(codes: DType, offsets: bool) -> Callable[[Sizes], Op]:
    def make(s: Sizes) -> Op:
        rows, inputs, outputs = s["R"], s["K"] // GROUP * GROUP, s["N"]
        groups = ("weight_scales", "weight_offsets")[: 1 + offsets]
        read: list[tuple[str, tuple[int, ...], DType]] = [("codes", (rows, inputs), "i8"), ("scales", (rows,), "f32")]
        read += [("weights", (outputs, inputs), codes), *((name, (outputs, inputs // GROUP), "f32") for name in groups)]
        return _op("linear_g32", read, (rows, outputs))

    return make


def _embed_g32(s: Sizes) -> Op:
    words, width = s["V"], s["K"] // GROUP * GROUP
    groups = (words, width // GROUP)
    read: list[tuple[str, tuple[int, ...], DType]] = [("codes", (words, width), "u4"), ("weight_scales", groups, "f32")]
    return _op("embed_g32", [*read, ("weight_offsets", groups, "f32"), ("ids", (s["R"],), "i32")], (s["R"], width))


def _scores(cache: DType, **attributes: Attribute) -> Callable[[Sizes], Op]:
    def make(s: Sizes) -> Op:
        heads = s["H"] // s["KH"] * s["KH"]
        read: list[tuple[str, tuple[int, ...], DType]] = [("x", (s["R"], heads, s["D"]), "f32"), ("keys", (s["KH"], s["C"], s["D"]), cache)]
        return _op("scores", [*read, ("position", (1,), "i32")], (s["R"], heads, s["C"]), scale=0.25, **attributes)

    return make


def _mix(s: Sizes) -> Op:
    heads = s["H"] // s["KH"] * s["KH"]
    read: list[tuple[str, tuple[int, ...], DType]] = [("x", (s["R"], heads, s["C"]), "f32"), ("values", (s["KH"], s["C"], s["D"]), "f16")]
    return _op("mix", [*read, ("position", (1,), "i32")], (s["R"], heads, s["D"]))


def _rotary(interleaved: int) -> Callable[[Sizes], Op]:
    def make(s: Sizes) -> Op:
        pairs = min(s["P"], s["D"] // 2)
        tables: list[tuple[str, tuple[int, ...], DType]] = [("cosines", (s["C"], pairs), "f32"), ("sines", (s["C"], pairs), "f32")]
        heads = (s["R"], s["H"], s["D"])
        return _op("rotary", [("x", heads, "f32"), *tables, ("position", (1,), "i32")], heads, interleaved=interleaved)

    return make


def _cache_write(cache: DType) -> Callable[[Sizes], Op]:
    def make(s: Sizes) -> Op:
        whole = (s["KH"], s["C"], s["D"])
        return _op("cache_write", [("cache", whole, cache), ("x", (s["R"], s["KH"], s["D"]), "f32"), ("position", (1,), "i32")], whole)

    return make


def _rows(kind: str, **attributes: Attribute) -> Callable[[Sizes], Op]:
    return lambda s: _op(kind, [("x", (s["R"], s["K"]), "f32")], (s["R"], s["K"]), **attributes)


def _pair(kind: str, common: bool) -> Callable[[Sizes], Op]:
    def make(s: Sizes) -> Op:
        x = (s["R"], s["K"])
        return _op(kind, [("x", x, "f32"), ("other", x[1:] if common else x, "f32")], x)

    return make


def _fused_product(s: Sizes) -> Op:
    """A norm and a quantisation before a product, and what is added to it after."""
    (x, gain), (normed,) = (
        (Value("x", (s["R"], s["K"]), "f32"), Value("gain", (s["K"],), "f32")),
        (Value("normed", (s["R"], s["K"]), "f32"),),
    )
    product = Value("product", (s["R"], s["N"]), "f32")
    quantise, linear = _quantise(s, "normed"), _linear_i8(s)
    linear = Op("linear_i8", linear.inputs, (product,))
    add = Op("add", (product, Value("other", product.shape, "f32")), (Value("y", product.shape, "f32"),))
    return fused((Op("rms_norm", (x, gain), (normed,), (("eps", 1e-5),)), quantise, linear, add), add.outputs)


CASES: tuple[Case, ...] = (
    Case(
        "embed f32",
        ("R", "K", "V"),
        lambda s: _op("embed", [("table", (s["V"], s["K"]), "f32"), ("ids", (s["R"],), "i32")], (s["R"], s["K"])),
    ),
    Case(
        "embed f16",
        ("R", "K", "V"),
        lambda s: _op("embed", [("table", (s["V"], s["K"]), "f16"), ("ids", (s["R"],), "i32")], (s["R"], s["K"])),
    ),
    Case(
        "embed_i8",
        ("R", "K", "V"),
        lambda s: _op(
            "embed_i8",
            [("codes", (s["V"], s["K"]), "i8"), ("weight_scales", (s["V"],), "f32"), ("ids", (s["R"],), "i32")],
            (s["R"], s["K"]),
        ),
    ),
    Case("embed_g32 u4 offsets", ("R", "K", "V"), _embed_g32),
    Case(
        "rms_norm",
        ("R", "K"),
        lambda s: _op("rms_norm", [("x", (s["R"], s["K"]), "f32"), ("gain", (s["K"],), "f32")], (s["R"], s["K"]), eps=1e-5),
    ),
    Case(
        "rms_norm of heads",
        ("R", "H", "D"),
        lambda s: _op("rms_norm", [("x", (s["R"], s["H"], s["D"]), "f32"), ("gain", (s["D"],), "f32")], (s["R"], s["H"], s["D"]), eps=0.0),
    ),
    Case(
        "linear",
        ("R", "K", "N"),
        lambda s: _op("linear", [("x", (s["R"], s["K"]), "f32"), ("weights", (s["N"], s["K"]), "f32")], (s["R"], s["N"])),
    ),
    Case("quantise", ("R", "K"), _quantise),
    Case("quantise static", ("R", "K"), lambda s: _quantise(s, scale=0.02)),
    Case("linear_i8", ("R", "K", "N"), _linear_i8),
    Case("linear_g32 i8", ("R", "K", "N"), _linear_g32("i8", False)),
    Case("linear_g32 u4 offsets", ("R", "K", "N"), _linear_g32("u4", True)),
    Case("rotary", ("R", "H", "D", "C"), _rotary(0)),
    Case("rotary interleaved", ("R", "H", "D", "C"), _rotary(1)),
    Case("cache_write f16", ("R", "KH", "D", "C"), _cache_write("f16")),
    Case("cache_write f32", ("R", "KH", "D", "C"), _cache_write("f32")),
    Case("scores f16", ("R", "H", "KH", "D", "C"), _scores("f16")),
    Case("scores f32 softcap window", ("R", "H", "KH", "D", "C"), _scores("f32", softcap=2.0, window=3)),
    Case(
        "softmax",
        ("R", "H", "C"),
        lambda s: _op("softmax", [("x", (s["R"], s["H"], s["C"]), "f32"), ("position", (1,), "i32")], (s["R"], s["H"], s["C"])),
    ),
    Case("mix f16", ("R", "H", "KH", "D", "C"), _mix),
    Case("add", ("R", "K"), _pair("add", False)),
    Case("add for all rows", ("R", "K"), _pair("add", True)),
    Case("multiply", ("R", "K"), _pair("multiply", False)),
    Case("silu", ("R", "K"), _rows("silu")),
    Case("gelu", ("R", "K"), _rows("gelu")),
    Case("softcap", ("R", "K"), _rows("softcap", cap=3.0)),
    Case("reshape", ("R", "K"), lambda s: _op("reshape", [("x", (s["R"], s["K"]), "f32")], (s["R"], 2, s["K"] // 2))),
    Case(
        "gather", ("R", "K", "L"), lambda s: _op("gather", [("x", (s["R"], s["K"]), "f32"), ("index", (s["L"],), "i32")], (s["L"], s["K"]))
    ),
    Case("fused norm, quantise, linear_i8, add", ("R", "K", "N"), _fused_product),
)
FIXED = ("table", "gain", "weights", "weight_scales", "weight_offsets", "cosines", "sines")  # constants by name; the rest are inputs


def graph_of(op: Op) -> Graph:
    """The operation alone. Codes of an embedding are a constant too."""
    constants = {value.name for value in op.inputs if value.name in FIXED or (op.kind.startswith("embed") and value.name == "codes")}
    return Graph(
        "conformance",
        inputs=tuple(value for value in op.inputs if value.name not in constants),
        constants=tuple(value for value in op.inputs if value.name in constants),
        ops=(op,),
        outputs=op.outputs,
        states=(("cache", "y"),) if op.kind == "cache_write" else (),
    )


def arrays_of(graph: Graph, seed: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """Constants and inputs. Of several rows of floats, the first is all zero, and the second a thousand times larger than the rest."""
    rng = np.random.default_rng(seed)
    limits = {"ids": _limit(graph, "table", "codes"), "index": _limit(graph, "x"), "position": _positions(graph)}

    def array(value: Value) -> Array:
        if value.dtype == "i32":
            return rng.integers(0, limits[value.name], value.shape).astype(np.int32)
        if value.dtype in ("i8", "u4"):
            low, high = (-127, 128) if value.dtype == "i8" else (0, 16)
            return rng.integers(low, high, value.shape).astype(ARRAYS[value.dtype])
        floats = rng.standard_normal(value.shape)
        if value.name == "x" and value.shape[0] > 2:
            floats[0], floats[1] = 0, floats[1] * 1000
        return floats.astype(ARRAYS[value.dtype])

    return {value.name: array(value) for value in graph.constants}, {value.name: array(value) for value in graph.inputs}


def _limit(graph: Graph, *names: str) -> int:
    return next((value.shape[0] for value in (*graph.constants, *graph.inputs) if value.name in names), 1)


def _positions(graph: Graph) -> int:
    """Positions of the first row at which all rows have one."""
    rows = next((value.shape[0] for value in graph.inputs if value.name == "x"), 1)
    shapes = {value.name: value.shape for value in (*graph.inputs, *graph.constants)}
    capacity = [shapes[name][place] for name, place in (("cosines", 0), ("cache", 1), ("keys", 1), ("values", 1)) if name in shapes]
    return max(1, min(capacity or [shapes["x"][-1] if "x" in shapes else rows]) - rows + 1)
