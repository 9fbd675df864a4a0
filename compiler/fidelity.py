"""How far a compiled model strays from its float32 source, over a text that everybody has: the help texts of Python itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from ..npu_backends.ir.value import Value
from ..shared_protocol.compile_errors import CompileError
from ..shared_protocol.model import Model
from .capture.capture import capture
from .capture.constants import constant_of, constants_of
from .program import Facts
from .quantise.gate import Agreement, measure
from .quantise.layout import EXACT, Scheme, layouts_of
from .quantise.quantise_graph import quantise_graph

ROWS = 16  # of a run
PIECES, LENGTH = 4, 64  # texts, and tokens of each


def fidelity(model: Model, facts: Facts, constants: Mapping[str, NDArray[Any]], texts: Sequence[str] | None = None) -> Agreement:
    """Divergence and agreement after each of the first LENGTH tokens of the texts (None: PIECES help texts). `constants` are the compiled
    model's, so what was done to its weights is in them.

    Holds the model's float32 weights meanwhile. Raises CompileError where there is no text.
    """
    texts = help_texts() if texts is None else texts
    sequences = [model.tokenizer.encode(text)[:LENGTH] for text in texts]
    context = min(facts.context, LENGTH)
    rows = min(ROWS, context)
    sequences = [ids[: context // rows * rows] for ids in sequences if ids]  # the last run's padding must fit as well
    source = capture(model.architecture, rows=rows, logit_rows=rows, context=context, name="source")
    scheme: Scheme = facts.scheme  # type: ignore[assignment]  # layouts_of refuses what is none
    layouts = layouts_of(source, scheme, model, facts.target.weight_formats)
    graph = quantise_graph(source, scheme, layouts=layouts)
    # tables of the positions are as long as the context, which is shorter here
    codes = {value.name: constants[value.name] if _stands(constants, value) else constant_of(model, value) for value in graph.constants}
    return measure((source, constants_of(model, source)), (graph, codes), sequences)


def _stands(constants: Mapping[str, NDArray[Any]], value: Value) -> bool:
    return value.name in constants and constants[value.name].shape == value.shape


def help_texts() -> list[str]:
    """The longest ones, in the order of their names. Raises CompileError on a Python without them."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise CompileError("this Python has no help texts to compare over", hint="give a text of your own") from None
    longest = sorted(topics, key=lambda name: (-len(topics[name]), name))[:PIECES]
    return [topics[name] for name in sorted(longest)]


def rounds_to_4_bits(model: Model, facts: Facts) -> bool:
    """Whether a matrix gets 4 bits that its file does not hold in 4 already."""
    scheme: Scheme = facts.scheme  # type: ignore[assignment]  # layouts_of refuses what is none
    source = capture(model.architecture, rows=1, logit_rows=1, context=1, name="source")
    layouts = layouts_of(source, scheme, model, facts.target.weight_formats)
    return any(layout.codes == "u4" and EXACT.get(model.tensors[name].type_name) != layout for name, layout in layouts.items())
