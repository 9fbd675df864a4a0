"""Which programs feed k tokens: the cheapest that exhaustive search finds, each token once, padding last and never beyond the context."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

import pytest
from hybrid.compiler.program import Shape
from hybrid.edge.npu.turns import Turn, Turns
from hybrid.shared_protocol.errors import EngineFailed


@dataclass(frozen=True)
class Priced:
    """All that is asked of a program."""

    shape: Shape
    seconds: float


CHUNK, VERIFY, STEP = Priced(Shape(32, 1), 10.0), Priced(Shape(8, 8), 4.0), Priced(Shape(1, 1), 3.0)


def test_a_draft_is_padded_to_the_rows_of_a_program_where_that_is_cheaper() -> None:
    turns = Turns([CHUNK, VERIFY, STEP], 64)
    assert turns.of(1, logits=True, start=0) == [Turn(2, 1)]
    assert turns.of(2, logits=True, start=0) == [Turn(1, 2)]
    assert turns.of(9, logits=True, start=0) == [Turn(1, 8), Turn(2, 1)]
    assert turns.of(10, logits=True, start=0) == [Turn(1, 8), Turn(1, 2)]
    assert [turns.seconds(k, logits=True, start=0) for k in range(10)] == [0, 3, 4, 4, 4, 4, 4, 4, 4, 7]


def test_what_needs_no_logits_goes_through_the_longest_program() -> None:
    turns = Turns([CHUNK, VERIFY, STEP], 100)
    assert turns.of(45, logits=False, start=0) == [Turn(0, 32), Turn(1, 8), Turn(1, 5)]
    assert turns.of(60, logits=False, start=0) == [Turn(0, 32), Turn(0, 28)]


def test_padding_that_would_leave_the_context_is_not_taken() -> None:
    turns = Turns([CHUNK, VERIFY, STEP], 40)
    assert turns.of(8, logits=True, start=32) == [Turn(1, 8)]
    assert turns.of(3, logits=True, start=37) == [Turn(2, 1)] * 3
    assert turns.of(0, logits=True, start=40) == []


def test_no_other_turns_are_cheaper() -> None:
    for seed in range(100):
        source = random.Random(seed)
        programs = [Priced(Shape(1, 1), source.uniform(1, 5))]
        programs += [Priced(Shape(rows, source.choice((1, rows))), source.uniform(1, 20)) for rows in source.sample(range(2, 20), 2)]
        context, logits = source.randint(12, 40), source.random() < 0.5
        start = source.randint(0, 8)
        count = source.randint(0, context - start)

        @cache
        def least(left: int, programs=programs, context=context, logits=logits, start=start, count=count) -> float:
            if not left:
                return 0.0
            found = []
            for one in programs:
                if start + count - left + one.shape.rows <= context:
                    most = one.shape.logit_rows if logits else one.shape.rows
                    found += [one.seconds + least(left - taken) for taken in range(1, min(most, left) + 1)]
            return min(found)

        turns = Turns(programs, context)
        chosen = turns.of(count, logits=logits, start=start)
        assert sum(turn.tokens for turn in chosen) == count
        assert abs(turns.seconds(count, logits=logits, start=start) - least(count)) < 1e-9
        assert all(turn.tokens <= (s.logit_rows if logits else s.rows) for turn in chosen for s in (programs[turn.program].shape,))


def test_programs_that_are_all_too_long_for_the_end_of_the_context_say_so() -> None:
    turns = Turns([VERIFY], 12)
    assert turns.of(4, logits=True, start=4) == [Turn(0, 4)]
    with pytest.raises(EngineFailed, match="context of 12 for 4 tokens after 8"):
        turns.of(4, logits=True, start=8)
    assert turns.of(0, logits=True, start=12) == []
