"""Buffers say what is wrong with them before anything is planned."""

from pathlib import Path

import pytest
from hybrid.compiler.memory.bound import lower_bound
from hybrid.compiler.memory.buffer import Buffer, by_id, read_csv
from hybrid.compiler.memory.errors import InvalidBuffers


@pytest.mark.parametrize("values", [(-1, 2, 8, 1), (3, 3, 8, 1), (4, 3, 8, 1), (0, 1, 0, 1), (0, 1, -8, 1), (0, 1, 8, 0)])
def test_a_buffer_without_life_bytes_or_alignment_is_refused_by_name(values: tuple[int, int, int, int]) -> None:
    with pytest.raises(InvalidBuffers, match="buffer act") as caught:
        Buffer("act", *values)
    assert caught.value.ids == ("act",)


def test_two_buffers_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidBuffers, match="two buffers are called a"):
        by_id([Buffer("a", 0, 1, 1), Buffer("a", 2, 3, 1)])


def test_a_buffer_owns_its_bytes_up_to_its_alignment() -> None:
    assert [Buffer("a", 0, 1, size, 64).extent for size in (1, 64, 65)] == [64, 64, 128]


def test_the_bound_is_the_busiest_step_with_alignment() -> None:
    #  step     0 1 2 3 4
    #  a 10     |===|          16
    #  b 20       |===|        32      steps 1: 48
    #  c 30           |===|    32      step 3 holds c alone: b died there
    buffers = [Buffer("a", 0, 2, 10, 16), Buffer("b", 1, 3, 20, 16), Buffer("c", 3, 5, 30, 16)]
    assert lower_bound(buffers) == 48
    assert lower_bound([]) == 0


def test_the_csv_form_is_read(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("id,lower,upper,size\nx,0,3,4\n\ny,2,9,5\n")
    assert read_csv(path, alignment=4) == [Buffer("x", 0, 3, 4, 4), Buffer("y", 2, 9, 5, 4)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with nothing"),
        ("id,lower,upper\nx,0,3\n", "begins with id,lower,upper"),
        ("id,lower,upper,size\nx,0,3\n", "line 2: x,0,3"),
        ("id,lower,upper,size\nx,0,3,4\ny,0,3,1.5\n", "line 3: y,0,3,1.5"),
        ("id,lower,upper,size\nx,5,3,4\n", r"line 2: buffer x lives in \[5, 3\)"),
        ("id,lower,upper,size\nx,0,3,4\nx,0,3,4\n", "two buffers are called x"),
    ],
)
def test_a_bad_csv_is_refused_by_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InvalidBuffers, match=said):
        read_csv(path)


def test_a_missing_csv_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidBuffers, match=r"absent\.csv cannot be read"):
        read_csv(tmp_path / "absent.csv")
