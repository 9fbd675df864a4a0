"""The cheapest assignment, by dynamic programming over the operations in their order.

After an operation all that matters of what came before is the chip it ran on and, for each value that is still to be read, what it would
cost to read it on each chip:

    ... | norm | linear | rotary | ...
                        ^ last chip: npu;  normed: (0 on npu, 3 us to cpu);  turned: (0, 2 us)

Ways that agree in this are one state, of which the cheapest is kept. Networks are chains with few values alive at once, so states are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .problem import Crossing, Problem

LIMIT = 20_000  # states after one operation; beyond, the dearest are dropped and the answer is no longer proved
RULERS = 8  # the cheapest states on each chip, each of which is held against all others


@dataclass(frozen=True, slots=True)
class Found:
    chips: tuple[int, ...]  # for each operation
    seconds: float
    exact: bool  # no cheaper assignment exists
    widest: int  # states after one operation, at most


# A value alive: the chip that its maker, still to come, was taken to be on (-1: it is known), and the price of reading it on each chip.
Live = tuple[int, tuple[float, ...]]
State = tuple[int, tuple[Live, ...]]  # the last chip (-1: none yet), and the values alive by number


@dataclass(frozen=True, slots=True)
class _Step:
    """What one operation does to the values alive: their numbers before it, after it, what it reads and makes, and what ends with it."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    reads: tuple[int, ...]
    makes: tuple[int, ...]
    ends_wanted: tuple[int, ...]  # not read any more, and wanted on the host


def search(problem: Problem, limit: int = LIMIT) -> Found:
    """Exact unless more than `limit` states are left after some operation. Of equally cheap assignments always the same one."""
    costs: dict[State, float] = {(-1, ()): 0.0}
    history: list[dict[State, tuple[State, int]]] = []
    exact, widest = True, 1
    for number, step in enumerate(_steps(problem)):
        reached: dict[State, float] = {}
        come_from: dict[State, tuple[State, int]] = {}
        for state, cost in costs.items():
            for chip, price in enumerate(problem.prices[number]):
                if price is None:
                    continue
                start = cost + price + (problem.launches[chip] if chip != state[0] else 0.0)
                for live, added in _ways(problem, step, number, state[1], chip):
                    total, after = start + added, (chip, live)
                    if total < reached.get(after, float("inf")):
                        reached[after], come_from[after] = total, (state, chip)
        costs = _undominated(reached, problem.launches)
        widest = max(widest, len(costs))
        if len(costs) > limit:
            costs, exact = dict(sorted(costs.items(), key=lambda item: item[1])[:limit]), False
        history.append(come_from)
    state = min(costs, key=lambda state: costs[state])
    seconds, chips = costs[state], []
    for come_from in reversed(history):
        state, chip = come_from[state]
        chips.append(chip)
    return Found(tuple(reversed(chips)), seconds, exact, widest)


def _steps(problem: Problem) -> Iterator[_Step]:
    """A value lives from its first event, being made or read, to its last one."""
    touched: list[list[int]] = [[] for _ in problem.prices]
    last: list[int] = []
    for index, crossing in enumerate(problem.crossings):
        events = {*crossing.readers, *(() if crossing.maker is None else (crossing.maker,))}
        last.append(max(events))
        for number in events:
            touched[number].append(index)
    alive: set[int] = set()
    for number, indices in enumerate(touched):
        before = tuple(sorted(alive))
        ended = [index for index in indices if last[index] == number]
        alive = (alive | set(indices)) - set(ended)
        yield _Step(
            before,
            tuple(sorted(alive)),
            reads=tuple(index for index in indices if number in problem.crossings[index].readers),
            makes=tuple(index for index in indices if problem.crossings[index].maker == number),
            ends_wanted=tuple(index for index in ended if problem.crossings[index].wanted),
        )


def _ways(problem: Problem, step: _Step, number: int, live: tuple[Live, ...], chip: int) -> Iterator[tuple[tuple[Live, ...], float]]:
    """What may be alive after operation `number` on `chip`, and the price of all that was moved for it."""
    values = dict(zip(step.before, live, strict=True))
    for index in step.makes:
        taken_for, prices = values.get(index, (chip, problem.crossings[index].prices[chip]))
        if taken_for != chip:
            return
        values[index] = (-1, prices)
    open_homes = [index for index in step.reads if index not in values]
    for homes in _homes(problem, open_homes):
        now, added = values | homes, 0.0
        for index in step.reads:
            home, prices = now[index]
            added += prices[chip]
            now[index] = (home, tuple(0.0 if other == chip else price for other, price in enumerate(prices)))
        added += sum(now[index][1][problem.crossings[index].host] for index in step.ends_wanted)
        yield tuple(now[index] for index in step.after), added


def _homes(problem: Problem, indices: list[int]) -> Iterator[dict[int, Live]]:
    """Where values may be that are read before they are made: the host's are there, a state's is on any chip that can overwrite it."""
    if not indices:
        yield {}
        return
    first, *rest = indices
    crossing: Crossing = problem.crossings[first]
    if crossing.maker is None:
        homes = [(-1, crossing.prices[crossing.host])]
    else:
        homes = [(chip, crossing.prices[chip]) for chip, price in enumerate(problem.prices[crossing.maker]) if price is not None]
    for others in _homes(problem, rest):
        for home in homes:
            yield {first: home} | others


def _undominated(costs: dict[State, float], launches: tuple[float, ...]) -> dict[State, float]:
    """Without the states that some cheaper one can do all that they can after paying for what it lacks."""
    ordered = sorted(costs.items(), key=lambda item: item[1])
    rulers: dict[int, list[tuple[State, float]]] = {}
    kept: dict[State, float] = {}
    for state, cost in ordered:
        if any(ruling + _regret(ruler, state, launches) <= cost for chip in rulers for ruler, ruling in rulers[chip]):
            continue
        kept[state] = cost
        if len(rulers.setdefault(state[0], [])) < RULERS:
            rulers[state[0]].append((state, cost))
    return kept


def _regret(one: State, other: State, launches: tuple[float, ...]) -> float:
    """At most so much more is still to be paid from `one` than from `other`, whatever comes."""
    total = 0.0 if one[0] == other[0] else launches[other[0]]
    for (home, prices), (other_home, other_prices) in zip(one[1], other[1], strict=True):
        if home != other_home:
            return float("inf")
        total += sum(max(0.0, price - other_price) for price, other_price in zip(prices, other_prices, strict=True))
    return total
