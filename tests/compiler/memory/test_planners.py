"""What holds for every planner, whatever the buffers; and what the exact search proves."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import permutations
from pathlib import Path

import pytest
from hybrid.compiler.memory.alias import InPlace, View, merge
from hybrid.compiler.memory.bound import lower_bound
from hybrid.compiler.memory.buffer import Buffer, read_csv
from hybrid.compiler.memory.errors import InvalidBuffers, MemoryTooSmall
from hybrid.compiler.memory.exact import exact
from hybrid.compiler.memory.greedy import ORDERS, best_fit
from hybrid.compiler.memory.hill_climb import hill_climb
from hybrid.compiler.memory.plan import height
from hybrid.compiler.memory.portfolio import plan
from hybrid.compiler.memory.search import Pruning
from hybrid.compiler.memory.verifier import verify, verify_plan
from hypothesis import given, settings
from hypothesis import strategies as st

Planner = Callable[[Sequence[Buffer]], Mapping[str, int]]
PLANNERS: dict[str, Planner] = {
    **ORDERS,
    "hill climb": lambda buffers: hill_climb(buffers, iterations=20),
    "exact": lambda buffers: exact(buffers, tries=400).offsets,
    "portfolio": lambda buffers: plan(buffers, tries=400).offsets,
}
WITHOUT = {field.name: replace(Pruning(), **{field.name: False}) for field in fields(Pruning)}
SHARED = Path(os.environ.get("HYBRID_SHARED", "/nonexistent")) / "data" / "memory_planning"


@st.composite
def problems(
    draw: st.DrawFn, most: int = 12, largest: int = 40, alignments: Sequence[int] = (1, 4, 6, 16), steps: int = 10
) -> list[Buffer]:
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, steps), st.integers(1, steps // 2), st.integers(1, largest), st.sampled_from(alignments)),
            min_size=1,
            max_size=most,
        )
    )
    return [Buffer(f"b{i}", lower, lower + life, size, alignment) for i, (lower, life, size, alignment) in enumerate(rows)]


small = problems(most=6, largest=9, alignments=(1, 2, 3, 5), steps=6)


def least_height(buffers: Sequence[Buffer]) -> int:
    """By brute force: in a plan sorted by offset, stacking each on what it meets among those before it makes it no higher."""
    best = sum(b.extent + b.alignment for b in buffers)
    for order in permutations(buffers):
        tops: list[tuple[Buffer, int]] = []
        for b in order:
            below = max((top for other, top in tops if other.lower < b.upper and b.lower < other.upper), default=0)
            tops.append((b, -(-below // b.alignment) * b.alignment + b.extent))
        best = min(best, max(top for _, top in tops))
    return best


@given(problems())
@settings(max_examples=40)
def test_every_planner_s_plan_is_valid_and_no_smaller_than_the_bound(buffers: list[Buffer]) -> None:
    for planner in PLANNERS.values():
        assert verify(buffers, planner(buffers)) >= lower_bound(buffers)


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_names_and_their_order_change_nothing_but_names(buffers: list[Buffer], chance: object) -> None:
    names = [b.id for b in buffers]
    chance.shuffle(names)  # type: ignore[attr-defined]
    renamed = [replace(b, id=name) for b, name in zip(buffers, names, strict=True)]
    chance.shuffle(renamed)  # type: ignore[attr-defined]
    for planner in PLANNERS.values():
        assert places(buffers, planner(buffers)) == places(renamed, planner(renamed))


def places(buffers: Sequence[Buffer], offsets: Mapping[str, int]) -> list[tuple[int, ...]]:
    return sorted((b.lower, b.upper, b.size, b.alignment, offsets[b.id]) for b in buffers)


@given(small)
@settings(max_examples=60)
def test_the_exact_search_is_as_small_as_brute_force_and_says_so(buffers: list[Buffer]) -> None:
    found = exact(buffers)
    assert verify(buffers, found.offsets) == least_height(buffers)
    assert found.optimal


@given(small, st.data())
@settings(max_examples=30)
def test_a_smaller_buffer_makes_neither_the_bound_nor_the_least_plan_larger(buffers: list[Buffer], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(buffers) - 1))
    smaller = [replace(b, size=data.draw(st.integers(1, b.size))) if i == at else b for i, b in enumerate(buffers)]
    assert lower_bound(smaller) <= lower_bound(buffers)
    assert height(smaller, exact(smaller).offsets) <= height(buffers, exact(buffers).offsets)


@given(small)
@settings(max_examples=30)
def test_what_is_proved_is_the_least_with_any_pruning_switched_off(buffers: list[Buffer]) -> None:
    least, tries = least_height(buffers), 500
    for name, pruning in {"": Pruning(), **WITHOUT}.items():
        found = exact(buffers, pruning=pruning, tries=tries)
        # without a pruning the tries may run out, and nothing but that ends a search without a proof
        assert (verify(buffers, found.offsets) == least) if found.optimal else (found.tries > tries), name


@pytest.mark.parametrize("name", WITHOUT)
def test_a_pruning_switched_off_changes_no_size(name: str) -> None:
    for k in range(30):  # a fixed rule: each is proved within 400 tries, every fourth lies above its bound
        lives = [((i * (3 + k % 5) + k) % 7, 1 + (i * 5 + k) % 4) for i in range(6)]
        buffers = [Buffer(f"b{i}", at, at + life, 1 + (i * i * 7 + k * 3) % 9, 1 + (i + k) % 3) for i, (at, life) in enumerate(lives)]
        found = exact(buffers, pruning=WITHOUT[name])
        assert found.optimal
        assert height(buffers, found.offsets) == height(buffers, exact(buffers).offsets)


def test_a_plan_above_the_bound_can_be_proved_the_least() -> None:
    #  address 0   2 3     6        whichever lies first, the other's alignment leaves a byte bare
    #          |aa|.|bbbbb|
    buffers = [Buffer("a", 0, 1, 2, 2), Buffer("b", 0, 1, 3, 3)]
    made = plan(buffers)
    assert (made.bound, made.size, made.optimal) == (5, 6, True)


def test_a_place_that_no_order_of_sizes_finds_is_found() -> None:
    tower = [Buffer(f"t{i}", i, i + 2, 5 + (i * 7) % 11) for i in range(40)]
    base = [Buffer(f"l{i}", 5 * i, 5 * i + 11, 3 + (i * 5) % 7) for i in range(6)]
    buffers = [*tower, *base]
    made = plan(buffers)
    assert made.optimal
    assert made.size < min(height(buffers, order(buffers)) for order in ORDERS.values())


@pytest.mark.parametrize("count", [1, 7, 60])
def test_equal_sizes_that_all_meet_are_stacked_without_a_gap(count: int) -> None:
    buffers = [Buffer(f"b{i}", i, i + count, 64, 64) for i in range(count)]
    for planner in PLANNERS.values():
        assert height(buffers, planner(buffers)) == 64 * count


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 8)), min_size=1, max_size=30))
@settings(max_examples=25)
def test_equal_sizes_reach_the_bound_whatever_their_lives(lives: list[tuple[int, int]]) -> None:
    buffers = [Buffer(f"b{i}", lower, lower + life, 32) for i, (lower, life) in enumerate(lives)]
    assert plan(buffers).ratio == 1.0


def test_a_chain_of_layers_reaches_the_bound() -> None:
    hidden = [Buffer(f"hidden{i}", 3 * i, 3 * i + 4, 2304, 64) for i in range(30)]
    wide = [Buffer(f"wide{i}", 3 * i + 1, 3 * i + 3, 6144, 64) for i in range(30)]
    assert plan([*hidden, *wide]).ratio == 1.0


@given(problems(most=8, alignments=(1,)), st.data())
@settings(max_examples=40)
def test_views_and_in_place_pairs_hold_in_every_plan(buffers: list[Buffer], data: st.DataObject) -> None:
    views, pairs, extra = [], [], []
    for b in buffers:
        what = data.draw(st.sampled_from(["nothing", "view", "pair"]))
        if what == "view":
            offset = data.draw(st.integers(0, b.size - 1))
            life = data.draw(st.integers(1, 12))
            extra.append(Buffer(f"{b.id} part", b.lower, b.lower + life, b.size - offset))
            views.append(View(b.id, f"{b.id} part", offset))
        elif what == "pair":
            extra.append(Buffer(f"{b.id} next", b.upper - 1, b.upper + 2, b.size))
            pairs.append(InPlace(b.id, f"{b.id} next"))
    everything = [*buffers, *extra]
    merged = merge(everything, views, pairs)
    assert len(merged.taken) + len(merged.refused) == len(pairs)
    made = plan(merged.buffers, tries=400)
    assert verify(everything, merged.offsets(made.offsets), made.size, views, merged.taken) == made.size


def test_capacity_says_what_would_fit() -> None:
    buffers = [Buffer("a", 0, 2, 60), Buffer("b", 1, 3, 60)]
    assert plan(buffers, capacity=120).size == 120
    with pytest.raises(MemoryTooSmall, match="120 bytes are live at the busiest step, the memory has 100") as caught:
        plan(buffers, capacity=100)
    assert (caught.value.needed, caught.value.capacity) == (120, 100)
    with pytest.raises(InvalidBuffers, match="two buffers are called a"):
        plan([*buffers, buffers[0]])


def test_nothing_to_place_is_a_plan() -> None:
    made = plan([])
    assert (made.size, made.bound, made.ratio, made.optimal) == (0, 0, 1.0, True)


def hard(count: int = 40) -> list[Buffer]:
    """Sizes and lives from a fixed rule: greedy orders miss the bound."""
    return [Buffer(f"b{i}", (i * 17) % 31, (i * 17) % 31 + 2 + (i * 7) % 9, 16 * (1 + (i * 29) % 23), 16) for i in range(count)]


def test_a_clock_ends_the_search_with_a_valid_plan() -> None:
    ticks = iter(range(10**6))
    made = plan(hard(80), seconds=5, clock=lambda: float(next(ticks)))
    verify_plan(made)
    assert next(ticks) < 100


def test_a_small_budget_gives_a_valid_plan_that_claims_no_proof() -> None:
    made = plan(hard(80), tries=1)
    verify_plan(made)
    assert made.optimal == (made.size == made.bound)


def test_the_same_plan_comes_from_every_process() -> None:
    program = (
        "from hybrid.compiler.memory.portfolio import plan\n"
        "from hybrid.compiler.memory.buffer import Buffer\n"
        "made = plan([Buffer(f'b{i}', (i * 17) % 31, (i * 17) % 31 + 2 + (i * 7) % 9, 16 * (1 + (i * 29) % 23), 16) for i in range(40)])\n"
        "print(made.planner, sorted(made.offsets.items()))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert said == {f"{plan(hard()).planner} {sorted(plan(hard()).offsets.items())}\n"}


def test_best_fit_takes_the_tightest_gap() -> None:
    #  address 0   8   18        30     36
    #          |xxx|   |yyyyyyyyy|      |zzz|      gaps of 10 and 6: what has 6 goes into the second
    placed = [Buffer("x", 0, 9, 8), Buffer("gap", 0, 1, 10), Buffer("y", 0, 9, 12), Buffer("hole", 0, 1, 6), Buffer("z", 0, 9, 4)]
    offsets = best_fit([*placed, Buffer("new", 1, 9, 6)])
    assert offsets["new"] == 30


@pytest.mark.skipif(not SHARED.is_dir(), reason="HYBRID_SHARED has no data/memory_planning")
@pytest.mark.parametrize("name", ["B", "C", "F"])
def test_a_known_hard_problem_is_planned_at_its_bound(name: str) -> None:
    made = plan(read_csv(SHARED / f"{name}.1048576.csv"), capacity=1_048_576)
    assert made.ratio == 1.0
