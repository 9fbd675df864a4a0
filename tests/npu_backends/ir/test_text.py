"""A graph's text is read back as the very graph, and what is wrong in a text is said with its line."""

from __future__ import annotations

import random

import pytest
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.ir.op import Op, fused
from hybrid.npu_backends.ir.text import from_text, to_text
from hybrid.npu_backends.ir.value import Value
from hybrid.shared_protocol.compile_errors import GraphInvalid
from hybrid.tests.support.graphs import random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

TEXT = """\
graph "small \\"step\\"" {
  input %x: f32[1,2]
  input %cache: f16[1,4,2]
  input %where: i32[1]
  constant %w: f32[3,2]
  state %cache -> %after
  %y: f32[1,3] = fused(%x, %w) {
    %t: f32[1,3] = linear(%x, %w)
    %y: f32[1,3] = silu(%t)
  }
  %q: i8[1,3], %s: f32[1] = quantise(%y) {scale = 0.25}
  %h: f32[1,1,2] = reshape(%x)
  %after: f16[1,4,2] = cache_write(%cache, %h, %where)
  %seen: f32[1,1,4] = scores(%h, %after, %where) {scale = 1e-05, window = 2}
  output %q
  output %s
  output %after
  output %seen
}
"""


def some_fused(graph: Graph, source: random.Random) -> Graph:
    """The graph with some runs of its operations as one."""
    wanted = {value.name for value in graph.outputs}
    ops: list[Op] = []
    at = 0
    while at < len(graph.ops):
        run = graph.ops[at : at + source.choice((1, 1, 2, 3))]
        at += len(run)
        later = {value.name for op in graph.ops[at:] for value in op.inputs} | wanted
        outputs = tuple(value for op in run for value in op.outputs if value.name in later)
        ops += [fused(run, outputs)] if len(run) > 1 and outputs else run
    return Graph(graph.name, graph.inputs, graph.constants, tuple(ops), graph.outputs, graph.states)


@settings(max_examples=60)
@given(source=st.randoms(use_true_random=False), ops=st.integers(1, 12), name=st.text(max_size=5))
def test_any_graph_is_read_back_as_it_was(source: random.Random, ops: int, name: str) -> None:
    graph = some_fused(random_graph(source, ops, name), source)
    assert from_text(to_text(graph)) == graph


def test_a_text_is_one_operation_a_line_with_the_body_of_a_fused_one_indented() -> None:
    x, cache, where, w = Value("x", (1, 2), "f32"), Value("cache", (1, 4, 2), "f16"), Value("where", (1,), "i32"), Value("w", (3, 2), "f32")
    t, y, q, s = Value("t", (1, 3), "f32"), Value("y", (1, 3), "f32"), Value("q", (1, 3), "i8"), Value("s", (1,), "f32")
    h, after, seen = Value("h", (1, 1, 2), "f32"), Value("after", (1, 4, 2), "f16"), Value("seen", (1, 1, 4), "f32")
    ops = (
        fused((Op("linear", (x, w), (t,)), Op("silu", (t,), (y,))), (y,)),
        Op("quantise", (y,), (q, s), (("scale", 0.25),)),
        Op("reshape", (x,), (h,)),
        Op("cache_write", (cache, h, where), (after,)),
        Op("scores", (h, after, where), (seen,), (("scale", 1e-5), ("window", 2))),
    )
    graph = Graph('small "step"', (x, cache, where), (w,), ops, (q, s, after, seen), (("cache", "after"),))
    assert to_text(graph) == TEXT and from_text(TEXT) == graph
    spaced = TEXT.replace("\n", "\r\n").replace("  output %q", "\n// what is wanted\n\toutput %q")
    assert from_text(spaced) == graph


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("graph ", "module ", "line 1: "),
        ('\\""', "", "line 1: "),
        ("i32[1]", "i33[1]", "line 4: where has the type 'i33'"),
        ("i32[1]", "i32[0]", "line 4: "),
        ("i32[1]", "i32[,]", "line 4: .* no shape"),
        ("%where: i32[1]", "%x: i32[1]", "line 4: x is made twice"),
        ("state %cache -> %after", "state %cache", "line 6: .* no state"),
        ("linear(%x, %w)", "linear(%x, %v)", "line 8: there is nothing named '%v'"),
        ("linear(%x, %w)", "linear(%x)", "line 8: linear t has 1 inputs"),
        ("silu(%t)", "silu(%t", "line 9: .* no operation"),
        ("silu(%t)", "relu(%t)", "line 9: there is no operation 'relu'"),
        ("%y: f32[1,3] = silu", "%z: f32[1,3] = silu", "line 7: the fused operation y does not make y"),
        ("fused(%x, %w) {", "silu(%x) {", "line 8: "),
        ("scale = 0.25", "scale = quarter", "line 11: 'quarter' is no number"),
        ("scale = 0.25", "scale 0.25", "line 11: .* no attribute"),
        ("scale = 0.25", 'scale = "0.25"', "line 11: scale of quantise q is '0.25', not a number"),
        ("window = 2", "width = 2", "line 14: scores seen has no attribute 'width'"),
        ("scores(%h, %after", "scores(%h, %cache", "line 14: scores seen reads cache after it was overwritten"),
        ("output %seen", "output %t", "line 18: there is nothing named '%t'"),
        ("state %cache -> %after", "state %where -> %after", r"line 19: the state \(where, after\)|line 19: the state where"),
        ("output %seen\n}\n", "output %seen\n", "line 19: the text ends before"),
        ("output %seen\n}", "output %seen\n}\n}", "line 20: there is more"),
        ("%t: f32[1,3] = linear(%x, %w)", "%t: f32[1,3] = fused(%x) {" * 2, "line 8: .* has no end"),
    ],
)
def test_what_is_wrong_in_a_text_is_said_with_its_line(old: str, new: str, told: str) -> None:
    assert old in TEXT
    with pytest.raises(GraphInvalid, match=f"^{told}"):
        from_text(TEXT.replace(old, new))


def test_bodies_have_a_deepest_level_and_numbers_a_length() -> None:
    deep = "".join(f"%y{level}: f32[1] = fused(%x) {{\n" for level in range(2000))
    with pytest.raises(GraphInvalid, match=r"^line 35: .* more than 32"):
        from_text('graph "deep" {\ninput %x: f32[1]\n' + deep)
    with pytest.raises(GraphInvalid, match=r"^line 14: .* whole number"):
        from_text(TEXT.replace("window = 2", "window = " + "9" * 10_000))
