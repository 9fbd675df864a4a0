"""Views and in-place pairs become one buffer; what cannot be merged is said."""

import pytest
from hybrid.compiler.memory.alias import InPlace, View, merge
from hybrid.compiler.memory.buffer import Buffer
from hybrid.compiler.memory.errors import InvalidBuffers
from hybrid.compiler.memory.greedy import by_size
from hybrid.compiler.memory.verifier import verify


def test_an_owner_lives_as_long_as_its_last_view() -> None:
    buffers = [Buffer("qkv", 0, 2, 96), Buffer("k", 1, 4, 32), Buffer("k_head", 2, 7, 8)]
    merged = merge(buffers, views=[View("qkv", "k", 32), View("k", "k_head", 16)])
    assert merged.buffers == (Buffer("qkv", 0, 7, 96),)
    assert merged.offsets({"qkv": 1000}) == {"qkv": 1000, "k": 1032, "k_head": 1048}


def test_a_chain_of_in_place_steps_is_one_buffer() -> None:
    buffers = [Buffer(name, step, step + 2, 64) for step, name in enumerate("abc")]
    merged = merge(buffers, pairs=[InPlace("b", "c"), InPlace("a", "b")])
    assert merged.buffers == (Buffer("a", 0, 4, 64),)
    assert merged.offsets({"a": 0}) == {"a": 0, "b": 0, "c": 0}
    verify(buffers, merged.offsets({"a": 0}), 64, pairs=merged.taken)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (Buffer("out", 1, 5, 64), "lives until step 2"),
        (Buffer("out", 3, 5, 64), "dead before"),
        (Buffer("out", 2, 5, 32), "has 64 bytes, out 32"),
    ],
)
def test_a_pair_that_cannot_share_keeps_two_places_and_says_why(output: Buffer, said: str) -> None:
    merged = merge([Buffer("in", 0, 3, 64), output], pairs=[InPlace("in", "out")])
    assert len(merged.buffers) == 2
    assert merged.taken == ()
    assert said in merged.refused[0].reason


def test_only_one_of_two_outputs_takes_a_place() -> None:
    buffers = [Buffer("in", 0, 3, 64), Buffer("left", 2, 5, 64), Buffer("right", 2, 6, 64)]
    merged = merge(buffers, pairs=[InPlace("in", "right"), InPlace("in", "left")])
    assert merged.taken == (InPlace("in", "left"),)
    assert [refused.pair for refused in merged.refused] == [InPlace("in", "right")]


def test_an_input_with_a_view_that_lives_on_keeps_its_place() -> None:
    buffers = [Buffer("in", 0, 3, 64), Buffer("seen", 1, 9, 16), Buffer("out", 2, 5, 64)]
    merged = merge(buffers, views=[View("in", "seen")], pairs=[InPlace("in", "out")])
    assert "lives until step 8" in merged.refused[0].reason
    verify(buffers, merged.offsets(by_size(merged.buffers)), views=[View("in", "seen")])


def test_the_place_of_a_group_suits_all_alignments_in_it() -> None:
    (group,) = merge([Buffer("a", 0, 2, 96, 6), Buffer("v", 1, 2, 8, 4)], views=[View("a", "v", 12)]).buffers
    assert group.alignment == 12


@pytest.mark.parametrize(
    ("views", "said"),
    [
        ([View("a", "v", 60)], "bytes 60 to 68 of a, which has 64"),
        ([View("a", "v", -4)], "bytes -4 to 4"),
        ([View("a", "v", 2)], "begins at byte 2 of a, which its alignment 4"),
        ([View("a", "v"), View("b", "v")], "a view of both a and b"),
        ([View("late", "v")], "born at step 1, before late at 2"),
        ([View("a", "c"), View("c", "a")], "a view of itself"),
        ([View("a", "nobody")], "names buffer nobody"),
        ([View("nobody", "v")], "names buffer nobody"),
    ],
)
def test_a_view_that_cannot_be_is_refused(views: list[View], said: str) -> None:
    buffers = [
        Buffer("a", 0, 2, 64),
        Buffer("b", 0, 2, 64),
        Buffer("c", 0, 2, 64),
        Buffer("late", 2, 3, 64),
        Buffer("v", 1, 3, 8, 4),
    ]
    with pytest.raises(InvalidBuffers, match=said):
        merge(buffers, views=views)


def test_a_pair_of_unknown_buffers_is_refused() -> None:
    with pytest.raises(InvalidBuffers, match="names buffer ghost"):
        merge([Buffer("a", 0, 2, 64)], pairs=[InPlace("a", "ghost")])
