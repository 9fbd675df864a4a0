"""Which programs feed k tokens soonest: a chip computes all rows of a program, whether tokens stand in them or not.

tokens   1  2  3  4  5  6  7  8  9 ...        ms of a draft on a chip that streams its weights: flat up to the rows of a program
program  1  8  8  8  8  8  8  8  8+1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...compiler.program import Program
from ...shared_protocol.errors import EngineFailed


@dataclass(frozen=True, slots=True)
class Turn:
    """Program number `program` for `tokens` tokens; its other rows are padding."""

    program: int
    tokens: int


class Turns:
    """The cheapest turns, by the compiler's costs, remembered for each number of tokens."""

    def __init__(self, programs: Sequence[Program], context: int) -> None:
        self._shapes = [program.shape for program in programs]
        self._seconds = [program.seconds for program in programs]
        self._context = context

    def seconds(self, count: int, *, logits: bool, start: int) -> float:
        return sum(self._seconds[turn.program] for turn in self.of(count, logits=logits, start=start))

    def of(self, count: int, *, logits: bool, start: int) -> list[Turn]:
        """Turns for `count` tokens after `start`, in order. `logits`: every one of them is to get its logits, else the last at most.

        A program whose padding would leave the context is not taken. So a turn takes all it can, or as many as let a long program follow
        whose rows end with the context. Raises EngineFailed where no program is short enough for the context's end.
        """
        best: list[tuple[float, int, int]] = [(0.0, -1, 0)]  # by tokens that are left: seconds, program and tokens of the first turn
        for left in range(1, count + 1):
            at = start + count - left
            choices = []
            for number, shape in enumerate(self._shapes):
                most = min(left, shape.logit_rows if logits else shape.rows)
                if at + shape.rows <= self._context:
                    fewer = [self._context - other.rows - at for other in self._shapes if at + most > self._context - other.rows]
                    choices += [
                        (self._seconds[number] + best[left - taken][0], number, -taken) for taken in (most, *fewer) if 0 < taken <= most
                    ]
            seconds, number, taken = min(choices, default=(math.inf, -1, 0))
            best.append((seconds, number, -taken))
        if best[count][0] == math.inf:
            raise EngineFailed(
                f"no program has its rows within the context of {self._context} for {count} tokens after {start}",
                hint="compile one of a single row beside the others",
            )
        turns, left = [], count
        while left:
            _, number, taken = best[left]
            turns.append(Turn(number, taken))
            left -= taken
        return turns
