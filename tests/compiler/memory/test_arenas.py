"""Several memories: the fast one first, what moves least is spilled, what is kept is never shared."""

from dataclasses import replace

import pytest
from hybrid.compiler.memory.arena import Arena, Wanted, page, ring
from hybrid.compiler.memory.arenas import plan_arenas
from hybrid.compiler.memory.buffer import Buffer
from hybrid.compiler.memory.errors import InvalidBuffers, MemoryTooSmall, PlanFault
from hybrid.compiler.memory.verifier import verify_arenas
from hypothesis import given, settings
from hypothesis import strategies as st

BOTH = ("sram", "dram")


def want(id: str, lower: int, upper: int, size: int, reuse: float = 1.0, arenas: tuple[str, ...] = BOTH, kept: bool = False) -> Wanted:
    return Wanted(Buffer(id, lower, upper, size), arenas, reuse, kept)


def test_everything_lies_in_the_fast_memory_while_there_is_room() -> None:
    plans = plan_arenas([want("a", 0, 2, 60), want("b", 1, 3, 40), want("c", 2, 4, 60)], [Arena("sram", 100), Arena("dram", 10_000)])
    assert {name for name, _ in plans.places.values()} == {"sram"}
    assert (plans.plans["sram"].size, plans.plans["sram"].bound, plans.plans["dram"].size) == (100, 100, 0)
    assert plans.spilled == ()


def test_of_what_frees_enough_alone_the_one_that_moves_least_is_spilled() -> None:
    #  100 bytes of room, 150 live: 50 must go. `tiny` is too little; `hot` would do but moves 550 bytes, `cold` 130.
    wanted = [want("hot", 0, 2, 55, reuse=10), want("cold", 0, 2, 65, reuse=2), want("tiny", 0, 2, 30, reuse=0.1)]
    plans = plan_arenas(wanted, [Arena("sram", 100), Arena("dram", 10_000)])
    assert [(s.id, s.wanted, s.got, s.traffic) for s in plans.spilled] == [("cold", "sram", "dram", 130.0)]


def test_what_was_spilled_first_comes_back_when_room_is_left() -> None:
    #  60 of 160 must go, and nothing is enough alone: `small` goes, then `mid`, by touches a byte; `big` is enough for the 30 that
    #  are left to go, and leaves 15 free: too little for `mid`, and enough for `small`
    wanted = [want("small", 0, 1, 10, 1), want("mid", 0, 1, 20, 2), want("big", 0, 1, 45, 3), want("fixed", 0, 1, 85, arenas=("sram",))]
    plans = plan_arenas(wanted, [Arena("sram", 100), Arena("dram", 10_000)])
    assert [s.id for s in plans.spilled] == ["mid", "big"]


def test_a_kept_buffer_may_be_spilled_too() -> None:
    wanted = [want("kv", 0, 1, 60, kept=True), want("hot", 0, 1, 60, reuse=9)]
    plans = plan_arenas(wanted, [Arena("sram", 100), Arena("dram", 10_000)])
    assert plans.places == {"kv": ("dram", 0), "hot": ("sram", 0)}


def test_what_is_kept_is_never_shared_and_lies_before_the_pool() -> None:
    kv = ring("kv", bytes_per_token=8, window=16, arena="dram", alignment=64)
    wanted = [kv, want("early", 0, 1, 100, arenas=("dram",)), want("late", 5, 6, 100, arenas=("dram",))]
    plans = plan_arenas(wanted, [Arena("dram", 1000)])
    assert plans.places == {"kv": ("dram", 0), "early": ("dram", 128), "late": ("dram", 128)}
    assert plans.plans["dram"].size == 228


def test_pages_of_weights_share_a_fixed_pool_from_prefetch_to_last_use() -> None:
    #  each page is fetched one step ahead: two are there at any step, so a pool of two serves all
    pages = [page(f"layer{i}", 512, prefetch=max(i - 1, 0), last_use=i, pool="pages") for i in range(12)]
    plans = plan_arenas(pages, [Arena("pages", 1024, alignment=512)])
    assert plans.plans["pages"].size == 1024
    with pytest.raises(MemoryTooSmall, match="arena pages has 1000 bytes, 1024 are needed"):
        plan_arenas(pages, [Arena("pages", 1000, alignment=512)])


def test_every_place_suits_the_arena_s_alignment_and_the_buffer_s() -> None:
    wanted = [
        Wanted(Buffer("kept", 0, 1, 10, 6), ("dram",), kept=True),
        Wanted(Buffer("a", 0, 1, 5, 3), ("dram",)),
        Wanted(Buffer("b", 0, 1, 5), ("dram",)),
    ]
    places = plan_arenas(wanted, [Arena("dram", 1000, alignment=4)]).places
    assert [places[id][1] % step for id, step in (("kept", 12), ("a", 12), ("b", 4))] == [0, 0, 0]


def test_what_may_lie_nowhere_else_and_does_not_fit_is_named_with_what_would() -> None:
    wanted = [want(f"must{i}", 0, 2, 40, arenas=("sram",)) for i in range(7)]
    with pytest.raises(
        MemoryTooSmall, match=r"arena sram has 100 bytes, 280 are needed .* must0, must1, must2, must3, must4 and 2 more"
    ) as caught:
        plan_arenas(wanted, [Arena("sram", 100)])
    assert (caught.value.needed, caught.value.capacity) == (280, 100)
    with pytest.raises(MemoryTooSmall, match="arena dram has 50 bytes, 60"):
        plan_arenas([want("big", 0, 1, 60)], [Arena("sram", 10), Arena("dram", 50)])


def test_an_arena_may_take_in_what_a_later_one_spills() -> None:
    wanted = [want("a", 0, 1, 40, 5, arenas=("fast", "slow")), want("b", 0, 1, 40, 1, arenas=("fast", "slow"))]
    plans = plan_arenas(wanted, [Arena("slow", 1000), Arena("fast", 50)])
    assert plans.places == {"a": ("fast", 0), "b": ("slow", 0)}


@pytest.mark.parametrize("arenas", [(), ("sram", "sram"), ("nowhere",)])
def test_arenas_that_cannot_be_meant_are_refused(arenas: tuple[str, ...]) -> None:
    with pytest.raises(InvalidBuffers, match="buffer a may lie in"):
        plan_arenas([want("a", 0, 1, 8, arenas=arenas)], [Arena("sram", 100)])


def test_the_verifier_finds_faults_across_arenas() -> None:
    wanted = [want("a", 0, 1, 8), want("kv", 0, 1, 8, arenas=("dram",), kept=True), want("late", 5, 6, 8)]
    arenas = [Arena("sram", 16), Arena("dram", 100, 8)]
    good = {"a": ("sram", 0), "kv": ("dram", 0), "late": ("dram", 8)}
    verify_arenas(wanted, arenas, good)
    for fault, change in {
        "arena": {"kv": ("sram", 0)},
        "overlap": {"late": ("dram", 0)},
        "alignment": {"late": ("dram", 12)},
        "capacity": {"a": ("sram", 9)},
        "foreign": {"ghost": ("dram", 0)},
    }.items():
        with pytest.raises(PlanFault) as caught:
            verify_arenas(wanted, arenas, {**good, **change})
        assert caught.value.fault == fault
    with pytest.raises(PlanFault, match="late has no place"):
        verify_arenas(wanted, arenas, {"a": ("sram", 0), "kv": ("dram", 0)})


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(1, 40), st.sampled_from([0.0, 1.0, 8.0])), min_size=1, max_size=10
    ),
    st.integers(1, 120),
)
@settings(max_examples=40)
def test_whatever_the_room_every_buffer_has_a_verified_place(rows: list[tuple[int, int, int, float]], room: int) -> None:
    wanted = [want(f"b{i}", lower, lower + life, size, reuse) for i, (lower, life, size, reuse) in enumerate(rows)]
    plans = plan_arenas(wanted, [Arena("sram", room), Arena("dram", 10_000)], tries=300)
    assert set(plans.places) == {w.buffer.id for w in wanted}
    assert plans.plans["sram"].size <= room
    renamed = [replace(w, buffer=replace(w.buffer, id=w.buffer.id + "'")) for w in wanted]
    assert [s.id + "'" for s in plans.spilled] == [
        s.id for s in plan_arenas(renamed, [Arena("sram", room), Arena("dram", 10_000)], tries=300).spilled
    ]
