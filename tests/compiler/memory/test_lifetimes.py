"""What lives when, read off graphs small enough to say it by hand."""

from itertools import pairwise

from hybrid.compiler.memory.alias import InPlace, View
from hybrid.compiler.memory.buffer import Buffer
from hybrid.compiler.memory.lifetimes import lifetimes, overwritable, states_of
from hybrid.npu_backends.base import Segment
from hybrid.npu_backends.ir.graph import Graph, subgraph
from hybrid.npu_backends.ir.op import Op, fused
from hybrid.npu_backends.ir.value import Value


def floats(name: str, *shape: int) -> Value:
    return Value(name, shape or (2, 8), "f32")


X, Y, GAIN = floats("x"), floats("y"), floats("gain", 8)
NORMED, GATED, HEADS, SUM = floats("normed"), floats("gated"), floats("heads", 2, 2, 4), floats("sum")
KEYS, AFTER, WHERE = Value("keys", (2, 5, 4), "f16"), Value("keys.after", (2, 5, 4), "f16"), Value("where", (1,), "i32")
OPS = (
    Op("rms_norm", (X, GAIN), (NORMED,), (("eps", 1e-5),)),
    Op("silu", (NORMED,), (GATED,)),
    Op("reshape", (GATED,), (HEADS,)),
    Op("cache_write", (KEYS, HEADS, WHERE), (AFTER,)),
    Op("add", (GATED, X), (SUM,)),
)
GRAPH = Graph("g", (X, KEYS, WHERE), (GAIN,), OPS, (SUM, AFTER), (("keys", "keys.after"),))


def segments(*cuts: int, chips: str = "npu") -> list[Segment]:
    bounds = [0, *cuts, len(OPS)]
    names = chips.split()
    return [
        Segment(f"s{number}", names[number % len(names)], subgraph(GRAPH, f"s{number}", OPS[low:high]))
        for number, (low, high) in enumerate(pairwise(bounds))
    ]


def lives(buffers: tuple[Buffer, ...]) -> dict[str, tuple[int, int]]:
    return {buffer.id: (buffer.lower, buffer.upper) for buffer in buffers}


def test_a_value_lives_from_the_step_that_makes_it_to_its_last_reader_and_inputs_and_outputs_to_the_end() -> None:
    needs = lifetimes(GRAPH, segments(chips="cpu"), alignment=16)
    assert lives(needs["dram"].buffers) == {
        "x": (0, 6),
        "where": (0, 6),
        "normed": (0, 2),
        "gated": (1, 5),
        "heads": (2, 4),
        "sum": (4, 6),
    }
    assert needs["dram"].views == (View("gated", "heads"),)
    assert needs["dram"].pairs == (InPlace("normed", "gated"), InPlace("gated", "sum"))  # of x or gated the first that is read
    assert {buffer.id: buffer.size for buffer in needs["dram"].buffers}["heads"] == 64
    assert not needs["sram"].buffers


def test_constants_and_states_stand_elsewhere_and_a_state_after_a_run_is_the_one_before() -> None:
    states = states_of(GRAPH, alignment=64)
    assert states.buffers == (Buffer("keys", 0, 1, 80, 64), Buffer("keys.after", 0, 1, 80, 64))
    assert states.views == (View("keys", "keys.after"),)


def test_what_never_leaves_a_segment_may_stand_on_its_chip() -> None:
    needs = lifetimes(GRAPH, segments(2, chips="npu cpu"), alignment=16, scratch=["npu"])
    assert lives(needs["sram"].buffers) == {"normed": (0, 2)}
    assert lives(needs["dram"].buffers) == {"x": (0, 6), "where": (0, 6), "gated": (1, 5), "heads": (2, 4), "sum": (4, 6)}


def test_a_view_keeps_its_owner_off_the_chip_when_another_segment_reads_it() -> None:
    needs = lifetimes(GRAPH, segments(3, chips="npu npu"), alignment=16, scratch=["npu"])
    assert set(lives(needs["sram"].buffers)) == {"normed"}
    inside = lifetimes(GRAPH, segments(), alignment=16, scratch=["npu"], outside=["gated"])
    assert set(lives(inside["sram"].buffers)) == {"normed"}
    assert lives(inside["dram"].buffers)["heads"] == (2, 4)
    assert set(lives(lifetimes(GRAPH, segments(), alignment=16, scratch=["npu"])["sram"].buffers)) == {"normed", "gated", "heads"}


def test_room_for_tiles_is_taken_while_their_operation_runs() -> None:
    needs = lifetimes(GRAPH, segments(), alignment=16, scratch=["npu"], staging={"normed": 40, "sum": 24})
    staged = {buffer.id: buffer for buffer in needs["sram"].buffers if "%" in buffer.id}
    assert staged == {"normed%tiles": Buffer("normed%tiles", 0, 1, 40, 16), "sum%tiles": Buffer("sum%tiles", 4, 5, 24, 16)}


def test_what_is_made_inside_a_fused_operation_has_no_place() -> None:
    both = fused(OPS[:2], (GATED,))
    graph = Graph("f", GRAPH.inputs, GRAPH.constants, (both, *OPS[2:]), GRAPH.outputs, GRAPH.states)
    needs = lifetimes(graph, [Segment("s", "cpu", graph)], alignment=16)
    assert "normed" not in lives(needs["dram"].buffers)


def test_only_what_is_computed_element_by_element_may_be_written_over_its_input() -> None:
    weights, codes, scales, scale = floats("w", 8, 8), Value("codes", (2, 8), "i8"), floats("scales", 2), floats("s", 8)
    linear = Op("linear", (X, weights), (NORMED,))
    assert overwritable(linear) == []
    assert overwritable(Op("add", (X, scale), (SUM,))) == [InPlace("x", "sum")]  # not the vector, which is smaller
    residual = Op("add", (Y, NORMED), (SUM,))
    assert overwritable(fused((linear, residual), (SUM,))) == [InPlace("y", "sum")]
    # a residual that the product reads as well must stay until the last tile
    assert overwritable(fused((linear, Op("add", (X, NORMED), (SUM,))), (SUM,))) == []
    # a norm needs its whole row
    again = Op("rms_norm", (SUM, GAIN), (GATED,), (("eps", 1e-5),))
    assert overwritable(fused((residual, again), (GATED,))) == []
    assert overwritable(fused((residual, again), (SUM, GATED))) == [InPlace("y", "sum")]
    quantise = Op("quantise", (SUM,), (codes, scales))
    assert overwritable(fused((residual, quantise), (codes, scales))) == []


def test_two_names_of_the_same_bytes_are_not_overwritten_while_one_of_them_is_read() -> None:
    flat = floats("flat", 16)
    back = floats("back")
    ops = (
        Op("silu", (X,), (NORMED,)),
        Op("reshape", (NORMED,), (flat,)),
        Op("reshape", (flat,), (back,)),
        Op("add", (NORMED, back), (SUM,)),
    )
    graph = Graph("g", (X,), (), ops, (SUM,))
    needs = lifetimes(graph, [Segment("s", "cpu", graph)], alignment=16)
    assert needs["dram"].pairs == (InPlace("x", "normed"),)
