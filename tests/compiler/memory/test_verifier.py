"""The verifier finds every kind of fault, and lets through only sharing that was declared."""

from dataclasses import replace

import pytest
from hybrid.compiler.memory.alias import InPlace, View
from hybrid.compiler.memory.buffer import Buffer
from hybrid.compiler.memory.errors import PlanFault
from hybrid.compiler.memory.plan import make_plan
from hybrid.compiler.memory.verifier import verify, verify_plan

#  address 0    16   32   48
#  step 0  |aaaaaaaaa|
#  step 1  |aaaaaaaaa|bbbb|
#  step 2  |cccc|     bbbb|
BUFFERS = [Buffer("a", 0, 2, 30, 16), Buffer("b", 1, 3, 16, 16), Buffer("c", 2, 3, 9, 16)]
OFFSETS = {"a": 0, "b": 32, "c": 0}


def fault(buffers: list[Buffer], offsets: dict[str, int], **rules: object) -> tuple[str, tuple[str, ...]]:
    with pytest.raises(PlanFault) as caught:
        verify(buffers, offsets, **rules)  # type: ignore[arg-type]
    return caught.value.fault, caught.value.ids


def test_a_valid_plan_passes_and_its_height_is_returned() -> None:
    assert verify(BUFFERS, OFFSETS, capacity=48) == 48
    assert verify([], {}) == 0


def test_two_that_meet_are_both_named() -> None:
    assert fault(BUFFERS, {**OFFSETS, "b": 16}) == ("overlap", ("a", "b"))
    assert fault(BUFFERS, {**OFFSETS, "c": 32}) == ("overlap", ("b", "c"))


def test_the_padding_of_a_buffer_belongs_to_it() -> None:
    tight = [Buffer("a", 0, 2, 30, 16), Buffer("b", 0, 2, 2, 2)]
    assert fault(tight, {"a": 0, "b": 30}) == ("overlap", ("a", "b"))
    assert verify(tight, {"a": 0, "b": 32}) == 34


def test_a_step_where_one_dies_is_free_for_the_next() -> None:
    assert verify([Buffer("a", 0, 2, 8), Buffer("b", 2, 3, 8)], {"a": 0, "b": 0}) == 8


def test_missing_foreign_misaligned_negative_and_high_buffers_are_found() -> None:
    assert fault(BUFFERS, {"a": 0, "b": 32}) == ("missing", ("c",))
    assert fault(BUFFERS, {**OFFSETS, "d": 64}) == ("foreign", ("d",))
    assert fault(BUFFERS, {**OFFSETS, "b": 40}) == ("alignment", ("b",))
    assert fault(BUFFERS, {**OFFSETS, "a": -16}) == ("negative", ("a",))
    assert fault(BUFFERS, OFFSETS, capacity=47) == ("capacity", ("b",))
    assert fault([*BUFFERS, BUFFERS[0]], OFFSETS)[0] == "foreign"


def test_a_buffer_among_many_that_lies_inside_another_is_found() -> None:
    towers = [Buffer(f"t{i}", 0, 100, 10) for i in range(50)]
    inside = Buffer("inside", 40, 41, 2)
    offsets = {b.id: 10 * i for i, b in enumerate(towers)}
    assert fault([*towers, inside], {**offsets, "inside": 254}) == ("overlap", ("t25", "inside"))
    assert verify([*towers, inside], {**offsets, "inside": 500}) == 502


def test_a_view_must_lie_where_it_says_and_holds_its_owner() -> None:
    buffers = [Buffer("a", 0, 1, 32), Buffer("v", 0, 3, 8), Buffer("b", 2, 3, 32)]
    view = [View("a", "v", 8)]
    assert fault(buffers, {"a": 0, "v": 16, "b": 32}, views=view) == ("view", ("v", "a"))
    assert fault(buffers, {"a": 0, "v": 8, "b": 16}, views=view) == ("overlap", ("a", "b"))
    assert fault(buffers, {"a": 0, "v": 8, "b": 32}) == ("overlap", ("a", "v"))
    assert fault(buffers, {"a": 0, "v": 8, "b": 32}, views=[View("a", "v", 8), View("v", "a", -8)])[0] == "view"
    assert verify(buffers, {"a": 0, "v": 8, "b": 32}, views=view) == 64


def test_an_output_in_place_must_be_declared_whole_and_in_time() -> None:
    buffers = [Buffer("x", 0, 2, 32), Buffer("y", 1, 4, 32)]
    both = {"x": 0, "y": 0}
    assert verify(buffers, both, pairs=[InPlace("x", "y")]) == 32
    assert fault(buffers, both) == ("overlap", ("x", "y"))
    assert fault(buffers, {"x": 0, "y": 16}, pairs=[InPlace("x", "y")]) == ("in_place", ("x", "y"))
    assert fault([buffers[0], replace(buffers[1], size=16)], both, pairs=[InPlace("x", "y")])[0] == "in_place"
    assert fault([replace(buffers[0], upper=3), buffers[1]], both, pairs=[InPlace("x", "y")])[0] == "in_place"
    assert fault(buffers, both, pairs=[InPlace("x", "z")])[0] == "in_place"


def test_two_outputs_cannot_take_one_place() -> None:
    buffers = [Buffer("x", 0, 2, 32), Buffer("y", 1, 4, 32), Buffer("z", 1, 3, 32)]
    pairs = [InPlace("x", "y"), InPlace("x", "z")]
    assert fault(buffers, {"x": 0, "y": 0, "z": 0}, pairs=pairs)[0] == "overlap"


def test_a_plan_that_lies_about_its_size_or_bound_is_found() -> None:
    plan = make_plan(BUFFERS, OFFSETS, "by hand")
    verify_plan(plan, 48)
    assert plan.optimal and plan.ratio == 1.0
    for lie, what in ((replace(plan, size=32), "size"), (replace(plan, bound=32), "bound")):
        with pytest.raises(PlanFault) as caught:
            verify_plan(lie)
        assert caught.value.fault == what
