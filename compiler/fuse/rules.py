"""What may be joined to a matrix product: the whole of what fusion knows about kinds of operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...npu_backends.ir.op import Op, flat

LINEAR = frozenset({"linear", "linear_i8", "linear_g32"})
ATTENTION = ("scores", "softmax", "mix")  # the one chain with two products in it: what lies between them grows with the context
PRODUCTS = LINEAR | {"scores", "mix"}


@dataclass(frozen=True, slots=True)
class Rule:
    """Operations of `kinds` may be done on a product's outputs before they are written, or on its inputs after they are read."""

    name: str
    kinds: frozenset[str]
    after: frozenset[str]  # products that take it as an epilogue
    before: frozenset[str]  # products that take it as a prologue
    row: bool = False  # it needs a whole row at once, not one tile of it


RULES = (
    Rule("norm", frozenset({"rms_norm"}), after=PRODUCTS, before=LINEAR, row=True),
    Rule("quantise", frozenset({"quantise"}), after=PRODUCTS, before=LINEAR, row=True),
    Rule("rotary", frozenset({"rotary"}), after=LINEAR, before=frozenset({"scores"})),
    Rule("activation", frozenset({"silu", "gelu"}), after=PRODUCTS, before=LINEAR),
    Rule("softcap", frozenset({"softcap"}), after=PRODUCTS, before=LINEAR),
    Rule("residual", frozenset({"add"}), after=PRODUCTS, before=LINEAR),
    Rule("multiply", frozenset({"multiply"}), after=PRODUCTS, before=LINEAR),
    Rule("softmax", frozenset({"softmax"}), after=frozenset({"scores"}), before=frozenset({"mix"}), row=True),
    Rule("view", frozenset({"reshape"}), after=PRODUCTS, before=PRODUCTS),
)


def epilogue(kind: str, product: str) -> Rule | None:
    """The rule that lets an operation of `kind` follow a product of kind `product` in one operation."""
    return next((rule for rule in RULES if kind in rule.kinds and product in rule.after), None)


def prologue(kind: str, product: str) -> Rule | None:
    return next((rule for rule in RULES if kind in rule.kinds and product in rule.before), None)


def needs_row(op: Op) -> bool:
    """Whether some operation in it needs whole rows. A quantisation with a scale known beforehand does not."""
    rows = {kind for rule in RULES if rule.row for kind in rule.kinds}
    return any(inner.kind in rows and not (inner.kind == "quantise" and inner.attributes) for inner in flat((op,)))


def describe(op: Op) -> str:
    """An operation as the report says it: "norm + linear + rotary", "attention + quantise", "linear". Views are left out."""
    return " + ".join(_words([inner.kind for inner in flat((op,)) if inner.kind != "reshape"])) or "reshape"


def _words(kinds: list[str]) -> Iterator[str]:
    while kinds:
        if tuple(kinds[:3]) == ATTENTION:
            yield "attention"
            kinds = kinds[3:]
        else:
            yield "norm" if kinds[0] == "rms_norm" else kinds[0]
            kinds = kinds[1:]
