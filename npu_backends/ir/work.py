"""How much there is to do in an operation, whatever the chip: products, other arithmetic, bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .op import Op
from .value import Value


@dataclass(frozen=True, slots=True)
class Product:
    """[m,k] times [k,n], `count` times over: what a matrix unit does in an operation."""

    m: int
    n: int
    k: int
    count: int = 1

    @property
    def macs(self) -> int:
        return self.m * self.n * self.k * self.count


@dataclass(frozen=True, slots=True)
class Work:
    product: Product | None  # the largest, where fused attention has two
    macs: int  # of all products
    elementwise: int  # float operations outside of the products
    bytes_in: int  # of inputs that change
    bytes_weights: int  # of what does not
    bytes_out: int


# float operations per element of the first output
ELEMENTWISE: Mapping[str, int] = MappingProxyType(
    {
        "embed": 0,
        "embed_i8": 1,
        "embed_g32": 2,
        "rms_norm": 4,
        "linear": 0,
        "quantise": 4,
        "linear_i8": 2,
        "linear_g32": 2,
        "rotary": 3,
        "cache_write": 1,
        "scores": 1,
        "softmax": 4,
        "mix": 0,
        "add": 1,
        "multiply": 1,
        "silu": 4,
        "gelu": 8,
        "softcap": 3,
        "reshape": 0,
        "gather": 0,
    }
)
# which inputs of an operation hold what is the same in every step
WEIGHTS: Mapping[str, slice] = MappingProxyType(
    {
        "embed": slice(0, 1),
        "embed_i8": slice(0, 2),
        "embed_g32": slice(0, -1),
        "rms_norm": slice(1, 2),
        "linear": slice(1, 2),
        "linear_i8": slice(2, None),
        "linear_g32": slice(2, None),
        "rotary": slice(1, 3),
    }
)
_SPARSE = ("embed", "embed_i8", "embed_g32", "rotary")  # read some rows of their weights only


def work_of(op: Op) -> Work:
    """Attention is counted over the whole capacity of the cache, as a chip that compiles for one shape computes it. A fused operation's
    bytes are those of its own inputs and outputs."""
    if op.kind == "fused":
        parts = [work_of(inner) for inner in op.body]
        made = {value.name for inner in op.body for value in inner.outputs}
        products = [part.product for part in parts if part.product]
        weights = {value.name: _weight_bytes(inner, value) for inner in op.body for value in _weights(inner) if value.name not in made}
        return Work(
            product=max(products, key=lambda product: product.macs, default=None),
            macs=sum(part.macs for part in parts),
            elementwise=sum(part.elementwise for part in parts),
            bytes_in=sum(value.bytes for value in op.inputs if value.name not in weights),
            bytes_weights=sum(weights.values()),
            bytes_out=_bytes_out(op),
        )
    weights = {value.name: _weight_bytes(op, value) for value in _weights(op)}
    product = product_of(op)
    return Work(
        product=product,
        macs=product.macs if product else 0,
        elementwise=ELEMENTWISE[op.kind] * op.outputs[0].elements if op.kind != "cache_write" else op.inputs[1].elements,
        bytes_in=sum(value.bytes for value in op.inputs if value.name not in weights and not _overwritten(op, value)),
        bytes_weights=sum(weights.values()),
        bytes_out=_bytes_out(op),
    )


def product_of(op: Op) -> Product | None:
    """The product of a plain operation: heads that share keys are rows of one product."""
    if op.kind in ("linear", "linear_i8", "linear_g32"):
        (m, n), k = op.outputs[0].shape, op.inputs[0].shape[1]
        return Product(m, n, k)
    if op.kind in ("scores", "mix"):
        rows, heads, _ = op.inputs[0].shape
        kv_heads, positions, dim = op.inputs[1].shape
        m = rows * heads // kv_heads
        return Product(m, positions, dim, kv_heads) if op.kind == "scores" else Product(m, dim, positions, kv_heads)
    return None


def _weights(op: Op) -> tuple[Value, ...]:
    return op.inputs[WEIGHTS[op.kind]] if op.kind in WEIGHTS else ()


def _weight_bytes(op: Op, value: Value) -> int:
    """Bytes read: of a table, the rows that are looked up."""
    return value.bytes if op.kind not in _SPARSE else value.bytes // value.shape[0] * op.outputs[0].shape[0]


def _overwritten(op: Op, value: Value) -> bool:
    return op.kind == "cache_write" and value == op.inputs[0]


def _bytes_out(op: Op) -> int:
    """Bytes written: of a cache, the new rows."""
    if op.kind == "cache_write":
        cache, rows, _ = op.inputs
        return cache.bytes // cache.elements * rows.elements
    return sum(_bytes_out(next(inner for inner in op.body if value in inner.outputs)) if op.body else value.bytes for value in op.outputs)
