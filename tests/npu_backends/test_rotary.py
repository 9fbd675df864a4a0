"""Rotary tables: what they hold, and that it does not depend on when it was computed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hybrid.npu_backends.cpu.rotary import CHUNK, RotaryTable
from hybrid.shared_protocol.architecture import Rotary


@pytest.mark.parametrize("interleaved", [True, False])
def test_a_row_is_cosine_and_sine_times_the_magnitude(interleaved: bool) -> None:
    table = RotaryTable(1000, Rotary((1.0, 0.25), interleaved, magnitude=1.5))
    table.fill(3)
    expected = [[1.5 * math.cos(2), 1.5 * math.sin(2)], [1.5 * math.cos(0.5), 1.5 * math.sin(0.5)]]
    np.testing.assert_allclose(table.at(2), expected, rtol=1e-6)
    assert table.array[2, 0, 1] == (table.at(2)[0, 1] if interleaved else table.at(2)[1, 0])


def test_no_bit_depends_on_the_length_of_the_context_or_on_the_steps_that_came_before() -> None:
    rotary = Rotary(tuple(500_000.0 ** (-i / 64) for i in range(64)), interleaved=False)
    short, long = RotaryTable(CHUNK + 5, rotary), RotaryTable(10 * CHUNK, rotary)
    for positions in (1, 2, CHUNK, CHUNK + 1, CHUNK + 5):
        short.fill(positions)
    long.fill(10 * CHUNK)
    np.testing.assert_array_equal(short.array[: CHUNK + 5], long.array[: CHUNK + 5])


def test_only_what_was_asked_for_is_computed() -> None:
    table = RotaryTable(1 << 24, Rotary((1.0,), interleaved=True))
    assert table.nbytes == 0
    table.fill(CHUNK + 1)
    assert table.nbytes == 2 * CHUNK * 8
