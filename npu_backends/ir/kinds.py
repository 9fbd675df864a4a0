"""The kinds of operations: the shapes each takes and gives. What they compute stands in semantics.py.

R rows (tokens of a step), K inputs and N outputs of a matrix, H heads, KH heads of keys, D their size, C positions of the cache, V words.

kind          inputs                                                        output
embed         table f32|f16 [V,K], ids i32 [R]                              f32 [R,K]
embed_i8      codes i8 [V,K], scales f32 [V], ids i32 [R]                   f32 [R,K]
embed_g32     codes i8|u4 [V,K], scales, (offsets) f32 [V,K/32], ids        f32 [R,K]
rms_norm      x f32 [...,K], gain f32 [K]                                   f32 as x         eps
linear        x f32 [R,K], weights f32 [N,K]                                f32 [R,N]
quantise      x f32 [R,K]                                                   i8 [R,K], scales f32 [R]   scale (static), or none (per row)
linear_i8     codes i8 [R,K], scales f32 [R], weights i8 [N,K], scales [N]  f32 [R,N]
linear_g32    codes i8 [R,K], scales f32 [R], weights i8|u4 [N,K],
              scales, (offsets) f32 [N,K/32]                                f32 [R,N]
rotary        x f32 [R,H,D], cosines, sines f32 [C,pairs], position i32 [1] f32 [R,H,D]      interleaved
cache_write   cache f16|f32 [KH,C,D], x f32 [R,KH,D], position i32 [1]      as the cache, in its place
scores        query f32 [R,H,D], keys f16|f32 [KH,C,D], position            f32 [R,H,C]      scale, softcap, window
softmax       scores f32 [R,H,C], position                                  f32 [R,H,C]      window
mix           weights f32 [R,H,C], values f16|f32 [KH,C,D], position        f32 [R,H,D]      window
add, multiply x, y f32 [...] (y may be [K], one for every row)              f32 as x
silu, gelu    x f32 [...]                                                   f32 as x
softcap       x f32 [...]                                                   f32 as x         cap
reshape       x [...]                                                       the same, of another shape; a view
gather        x f32 [R,K], index i32 [L]                                    f32 [L,K]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...shared_protocol.compile_errors import GraphInvalid
from .op import Op
from .value import DType, Value

Made = tuple[tuple[int, ...], DType]
GROUP = 32  # inputs that share a scale


@dataclass(frozen=True, slots=True)
class Kind:
    infer: Callable[[Op], tuple[Made, ...]]  # raises GraphInvalid
    attributes: frozenset[str] = frozenset()
    view: bool = False  # its output is its input's memory
    overwrites: int | None = None  # the input in whose memory its output stands


def infer(op: Op) -> tuple[Made, ...]:
    """Shapes and types of the outputs. Raises GraphInvalid for inputs or attributes that the kind does not take."""
    kind = KINDS.get(op.kind)
    if kind is None:
        raise GraphInvalid(f"there is no operation {op.kind!r}", hint=f"there are {', '.join(KINDS)}")
    foreign = {name for name, _ in op.attributes} - kind.attributes
    if foreign:
        raise GraphInvalid(f"{op.kind} {op.name} has no attribute {sorted(foreign)[0]!r}")
    return kind.infer(op)


def _take(op: Op, *patterns: str) -> tuple[dict[str, int], list[Value]]:
    """Match the inputs with patterns as "f32|f16 V K"; a letter stands for one size throughout, a number for itself, a pattern in
    brackets may be missing."""
    sizes: dict[str, int] = {}
    needed = [pattern for pattern in patterns if not pattern.startswith("(")]
    if len(op.inputs) == len(needed):
        patterns = tuple(needed)
    if len(op.inputs) != len(patterns):
        raise GraphInvalid(f"{op.kind} {op.name} has {len(op.inputs)} inputs, and takes {len(patterns)}")
    for value, pattern in zip(op.inputs, patterns, strict=True):
        types, *letters = pattern.strip("()").split()
        if value.dtype not in types.split("|") or len(value.shape) != len(letters):
            raise GraphInvalid(f"{op.kind} {op.name} takes {types} [{','.join(letters)}], not {value}")
        for letter, size in zip(letters, value.shape, strict=True):
            wanted = int(letter) if letter.isdigit() else sizes.setdefault(letter, size)
            if wanted != size:
                raise GraphInvalid(f"{op.kind} {op.name} takes {letter} = {wanted} where {value} has {size}")
    return sizes, list(op.inputs)


def _matrix(*patterns: str, rows: str = "R", columns: str = "N", grouped: bool = False) -> Callable[[Op], tuple[Made, ...]]:
    def infer(op: Op) -> tuple[Made, ...]:
        sizes, _ = _take(op, *patterns)
        if grouped and (sizes["K"] % GROUP or sizes["G"] * GROUP != sizes["K"]):
            raise GraphInvalid(f"{op.kind} {op.name} has {sizes['K']} inputs in {sizes['G']} groups", hint=f"a group has {GROUP}")
        return (((sizes[rows], sizes[columns]), "f32"),)

    return infer


def _same(op: Op) -> tuple[Made, ...]:
    (x,) = _floats(op, 1)
    return ((x.shape, "f32"),)


def _pair(op: Op) -> tuple[Made, ...]:
    x, y = _floats(op, 2)
    if y.shape not in (x.shape, x.shape[-1:]):
        raise GraphInvalid(f"{op.kind} {op.name} takes {y} with {x}: the shapes are equal, or the second has the last size alone")
    return ((x.shape, "f32"),)


def _norm(op: Op) -> tuple[Made, ...]:
    x, gain = _floats(op, 2)
    if gain.shape != x.shape[-1:]:
        raise GraphInvalid(f"rms_norm {op.name} takes a gain of [{x.shape[-1]}], not {gain}")
    if op.number("eps") < 0:
        raise GraphInvalid(f"eps of rms_norm {op.name} is negative")
    return ((x.shape, "f32"),)


def _floats(op: Op, count: int) -> tuple[Value, ...]:
    if len(op.inputs) != count or any(value.dtype != "f32" or not value.shape for value in op.inputs):
        raise GraphInvalid(f"{op.kind} {op.name} takes {count} of f32, not {', '.join(map(str, op.inputs))}")
    return op.inputs


def _quantise(op: Op) -> tuple[Made, ...]:
    sizes, (x,) = _take(op, "f32 R K")
    if op.attributes and not op.number("scale") > 0:
        raise GraphInvalid(f"scale of quantise {op.name} is not positive")
    return ((x.shape, "i8"), ((sizes["R"],), "f32"))


def _rotary(op: Op) -> tuple[Made, ...]:
    sizes, (x, *_) = _take(op, "f32 R H D", "f32 C P", "f32 C P", "i32 1")
    if 2 * sizes["P"] > sizes["D"] or op.integer("interleaved") not in (0, 1):
        raise GraphInvalid(f"rotary {op.name} turns {sizes['P']} pairs of heads of {sizes['D']}")
    return ((x.shape, "f32"),)


def _cache_write(op: Op) -> tuple[Made, ...]:
    sizes, (cache, *_) = _take(op, "f16|f32 KH C D", "f32 R KH D", "i32 1")
    if sizes["R"] > sizes["C"]:
        raise GraphInvalid(f"cache_write {op.name} writes {sizes['R']} rows into {sizes['C']} positions")
    return ((cache.shape, cache.dtype),)


def _attention(pattern: str, *, with_cache: bool, result: str) -> Callable[[Op], tuple[Made, ...]]:
    def infer(op: Op) -> tuple[Made, ...]:
        patterns = (pattern, "f16|f32 KH C D", "i32 1") if with_cache else (pattern, "i32 1")
        sizes, _ = _take(op, *patterns)
        if with_cache and sizes["H"] % sizes["KH"]:
            raise GraphInvalid(f"{op.kind} {op.name} has {sizes['H']} heads for {sizes['KH']} heads of keys")
        return ((tuple(sizes[letter] for letter in result), "f32"),)

    return infer


def _reshape(op: Op) -> tuple[Made, ...]:
    if len(op.inputs) != 1 or len(op.outputs) != 1 or op.inputs[0].elements != op.outputs[0].elements:
        raise GraphInvalid(f"reshape {op.name} makes {op.outputs[0]} of {', '.join(map(str, op.inputs))}")
    return ((op.outputs[0].shape, op.inputs[0].dtype),)


def _gather(op: Op) -> tuple[Made, ...]:
    sizes, _ = _take(op, "f32 R K", "i32 L")
    return (((sizes["L"], sizes["K"]), "f32"),)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "embed": Kind(_matrix("f32|f16 V K", "i32 R", columns="K")),
        "embed_i8": Kind(_matrix("i8 V K", "f32 V", "i32 R", columns="K")),
        "embed_g32": Kind(_matrix("i8|u4 V K", "f32 V G", "(f32 V G)", "i32 R", columns="K", grouped=True)),
        "rms_norm": Kind(_norm, frozenset({"eps"})),
        "linear": Kind(_matrix("f32 R K", "f32 N K")),
        "quantise": Kind(_quantise, frozenset({"scale"})),
        "linear_i8": Kind(_matrix("i8 R K", "f32 R", "i8 N K", "f32 N")),
        "linear_g32": Kind(_matrix("i8 R K", "f32 R", "i8|u4 N K", "f32 N G", "(f32 N G)", grouped=True)),
        "rotary": Kind(_rotary, frozenset({"interleaved"})),
        "cache_write": Kind(_cache_write, overwrites=0),
        "scores": Kind(_attention("f32 R H D", with_cache=True, result="RHC"), frozenset({"scale", "softcap", "window"})),
        "softmax": Kind(_attention("f32 R H C", with_cache=False, result="RHC"), frozenset({"window"})),
        "mix": Kind(_attention("f32 R H C", with_cache=True, result="RHD"), frozenset({"window"})),
        "add": Kind(_pair),
        "multiply": Kind(_pair),
        "silu": Kind(_same),
        "gelu": Kind(_same),
        "softcap": Kind(_same, frozenset({"cap"})),
        "reshape": Kind(_reshape, view=True),
        "gather": Kind(_gather),
    }
)
