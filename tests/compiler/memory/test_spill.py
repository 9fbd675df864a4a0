"""What leaves a chip that is too small: what moves least, and nothing that must stay."""

import pytest
from hybrid.compiler.memory.alias import InPlace, merge
from hybrid.compiler.memory.bound import lower_bound
from hybrid.compiler.memory.buffer import Buffer
from hybrid.compiler.memory.errors import MemoryTooSmall
from hybrid.compiler.memory.spill import leaving
from hypothesis import given, settings
from hypothesis import strategies as st


def test_of_what_frees_enough_alone_the_one_that_moves_least_leaves() -> None:
    #  150 bytes live, 100 of room: `tiny` is too little; `hot` would do but moves 550 bytes, `cold` 130
    merged = merge([Buffer("hot", 0, 2, 55), Buffer("cold", 0, 2, 65), Buffer("tiny", 0, 2, 30)], [], [])
    assert leaving(merged, {"hot": 10, "cold": 2, "tiny": 1}, 100, "%") == [{"cold"}]


def test_where_nothing_is_enough_alone_what_is_read_least_leaves_first() -> None:
    #  60 of 160 must go: `small`, then `middle`; `large` is enough for the 30 that are left
    buffers = [Buffer("small", 0, 1, 10), Buffer("middle", 0, 1, 20), Buffer("large", 0, 1, 45), Buffer("kept%", 0, 1, 85)]
    assert leaving(merge(buffers, [], []), {"small": 1, "middle": 2, "large": 3}, 100, "%") == [{"small"}, {"middle"}, {"large"}]


def test_what_shares_a_place_leaves_together_and_its_reads_add_up() -> None:
    buffers = [Buffer("x", 0, 2, 40), Buffer("y", 1, 3, 40), Buffer("z", 0, 3, 40)]
    merged = merge(buffers, [], [InPlace("x", "y")])
    assert leaving(merged, {"x": 1, "y": 1, "z": 3}, 50, "%") == [{"x", "y"}]
    assert leaving(merged, {"x": 1, "y": 1, "z": 1}, 50, "%") == [{"z"}]


def test_what_must_stay_and_is_too_much_is_named_with_what_would_do() -> None:
    merged = merge([Buffer("a%", 0, 2, 60), Buffer("b%", 1, 2, 50), Buffer("c", 0, 2, 9)], [], [])
    for gaps, needed in ((0, 110), (4, 114)):
        with pytest.raises(MemoryTooSmall, match=f"a%, b% take {needed} bytes at once, the chip has 100") as caught:
            leaving(merged, {}, 100, "%", gaps)
        assert (caught.value.needed, caught.value.capacity) == (needed, 100)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(1, 40), st.integers(0, 3)), max_size=10), st.integers(0, 120))
@settings(max_examples=40)
def test_what_is_left_fits(rows: list[tuple[int, int, int, int]], room: int) -> None:
    buffers = [Buffer(f"b{i}", lower, lower + life, size, 4) for i, (lower, life, size, _) in enumerate(rows)]
    left = leaving(merge(buffers, [], []), {f"b{i}": row[3] for i, row in enumerate(rows)}, room, "%")
    gone = frozenset().union(*left)
    assert lower_bound([b for b in buffers if b.id not in gone]) <= room
    assert not gone or lower_bound(buffers) > room
