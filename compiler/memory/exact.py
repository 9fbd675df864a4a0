"""The smallest plan there is: searches for a plan within ever other capacities, until one is found that is proved to be the least.

The first capacity asked is the bound: most plans that matter reach it, and reaching it is the proof. Where it is proved impossible, the
least capacity lies between that and the best plan known, and each answer halves what is between.

One search is lucky or lost: its first choices decide. So each is short, and the next one has another order of buffers, begun where the
last ones failed; lengths go 1 1 2 1 1 2 4 ... (Luby, Sinclair, Zuckerman 1993), so that a proof is reached as well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .buffer import Buffer
from .greedy import by_size
from .plan import height
from .problem import Problem, make_problem
from .search import Answer, Pruning, Verdict, never, search

TRIES = 60_000  # about 0.1 ms each
SHORTEST = 300  # tries of the shortest search, or two for each buffer if that is more
NOISE = 0.1  # how far chance moves a buffer in an order, in lengths of the order
FADING = 0.95  # what an earlier search's failures weigh in the next


@dataclass(frozen=True, slots=True)
class Found:
    """The best plan known when the search ended."""

    offsets: dict[str, int]  # bytes
    optimal: bool  # proved to be the least
    tries: int


def exact(
    buffers: Sequence[Buffer],
    known: Mapping[str, int] | None = None,
    tries: int = TRIES,
    pruning: Pruning | None = None,
    seed: int = 0,
    stop: Callable[[], bool] = never,
    enough: int = 0,
) -> Found:
    """Find the smallest plan, beginning with a `known` one (greedy by size when left out).

    `tries` counts options tried, so that the same buffers give the same plan anywhere. A plan of `enough` bytes ends the search,
    and so may `stop`, by a clock.
    """
    best = dict(known if known is not None else by_size(buffers))
    pruning = pruning or Pruning()
    problem = make_problem(buffers, all_steps=not pruning.sections)
    least, top = problem.bound, -(-height(buffers, best) // problem.unit)
    left, unknown, target = tries, least, least
    chance = random.Random(seed)
    weight = [1.0] * len(problem.sections)
    while max(least, enough // problem.unit) < top and left > 0 and not stop():
        share = tries // (4 if target == problem.bound else 8) + 1
        answer = _restarted(problem, target, min(share, left), pruning, chance, weight, stop)
        left -= answer.tried
        if answer.verdict is Verdict.FOUND:
            best = {problem.buffers[i].id: offset * problem.unit for i, offset in answer.offsets.items()}
            top = height(buffers, best) // problem.unit
        elif answer.verdict is Verdict.IMPOSSIBLE:
            least = target + 1
        else:
            unknown = target + 1
        lowest = max(least, unknown)
        if lowest >= top:  # what is between was not settled: ask the least again with what is left
            unknown = lowest = least
        target = (lowest + top - 1) // 2 if lowest > problem.bound else lowest
    return Found(best, least >= top, tries - left)


def _restarted(
    problem: Problem, capacity: int, tries: int, pruning: Pruning, chance: random.Random, weight: list[float], stop: Callable[[], bool]
) -> Answer:
    """Search again and again, each time otherwise, until there is an answer or no budget."""
    tried = 0
    orders = _orders(problem, chance)
    lengths = _luby()
    while tried < tries and not stop():
        length = min(max(SHORTEST, 2 * len(problem.size)) * next(lengths), tries - tried)
        answer = search(problem, capacity, next(orders), weight, length, pruning, stop)
        tried += answer.tried
        if answer.verdict is not Verdict.STOPPED:
            return Answer(answer.verdict, answer.offsets, tried)
        weight[:] = [1.0 + (w - 1.0) * FADING for w in weight]
    return Answer(Verdict.STOPPED, {}, tried)


def _orders(problem: Problem, chance: random.Random) -> Iterator[list[int]]:
    """Ranks of the buffers by each of several keys in turn; from the second round on, moved a little by chance."""
    count = len(problem.size)
    full = [sum(problem.size[i] for i in section) for section in problem.sections]
    busiest = [max(full[problem.first[i] : problem.last[i]]) for i in range(count)]
    life = [b.upper - b.lower for b in problem.buffers]
    wide = [problem.last[i] - problem.first[i] for i in range(count)]
    size, area = problem.size, [problem.size[i] * life[i] for i in range(count)]
    keys: tuple[Callable[[int], tuple[int, ...]], ...] = (
        lambda i: (-busiest[i], -life[i], -area[i]),
        lambda i: (-busiest[i], -area[i], -life[i]),
        lambda i: (-life[i], -area[i], -busiest[i]),
        lambda i: (-area[i],),
        lambda i: (-size[i],),
        lambda i: (-wide[i], -size[i]),
        lambda i: (-wide[i] * size[i],),
        lambda i: (-len(problem.overlaps[i]), -size[i]),
    )
    plain = [_rank(sorted(range(count), key=key)) for key in keys]
    yield from plain
    while True:
        for rank in plain:
            moved = [place + NOISE * count * chance.random() for place in rank]
            yield _rank(sorted(range(count), key=moved.__getitem__))


def _rank(order: Sequence[int]) -> list[int]:
    rank = [0] * len(order)
    for place, i in enumerate(order):
        rank[i] = place
    return rank


def _luby() -> Iterator[int]:
    """1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..."""
    block = [1]
    yield 1
    while True:
        yield from block
        yield 2 * block[-1]
        block = [*block, *block, 2 * block[-1]]
