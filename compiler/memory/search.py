"""Is there a plan within a capacity? A search that ends with a plan, with a proof that there is none, or out of budget.

It builds plans from below. Every section has a floor, below which nothing more will lie. A run of sections with one floor between higher
ones is a valley, and some buffer that could lie at its floor lies within it:

    floor   ─┐         ┌──         the next thing in this section is one of the buffers that can lie at its floor,
             │  valley │           or the floor there stays bare up to the next place where anything of it can lie
             └────▲────┘
                section

These cases exclude each other and leave nothing out, for any section of any valley: so the search may ask where the fewest cases are, and
never meets a plan twice. Plans are looked for among those in which every buffer rests on another or on the ground: letting buffers fall
makes no plan higher.

Other exact planners place buffers by ascending offset over all steps at once, so that a mistake at one end of the time line is paid for at
the other. Here the section asked next may be anywhere, and it is where earlier tries failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import sqrt

from .problem import Problem

FAR = 1 << 62  # the place of what is placed already, and the floor where nothing is left to place
BARE = -1  # the option that nothing lies at the floor


class Verdict(Enum):
    FOUND = "found"
    IMPOSSIBLE = "impossible"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Pruning:
    """Each can be switched off alone: the answer stays the same, the search grows."""

    sections: bool = True  # leave out steps that another one covers
    floors: bool = True  # a section whose floor plus what is left to place there exceeds the capacity ends the branch
    support: bool = True  # what does not lie at the floor rests on something that is not placed yet
    parts: bool = True  # what shares no section any more is solved apart: a failure in one part never searches another again
    twins: bool = True  # of buffers alike in life and size, one is tried


@dataclass(frozen=True, slots=True)
class Answer:
    verdict: Verdict
    offsets: dict[int, int]  # of each buffer of the problem, in units; empty unless found
    tried: int  # options tried: what the budget counts


@dataclass(slots=True)
class State:
    low: list[int]  # of each buffer: no lower than this; FAR once it is placed
    floor: list[int]  # of each section: the lowest of those
    rest: list[int]  # of each section: units that are left to place

    def copy(self) -> State:
        return State(self.low[:], self.floor[:], self.rest[:])


@dataclass(slots=True)
class Choice:
    """One question on the way, its options in turn, and the parts that the present option leaves to solve."""

    before: State
    part: list[int]
    section: int
    options: list[int]
    option: int = BARE
    after: State | None = None
    parts: list[list[int]] | None = None  # None: the present option failed, or none was tried yet


def never() -> bool:
    return False


def search(
    problem: Problem,
    capacity: int,
    rank: Sequence[int],
    weight: list[float],
    budget: int,
    pruning: Pruning,
    stop: Callable[[], bool] = never,
) -> Answer:
    """Look for a plan within `capacity` units, trying at most `budget` options, of one question in the order of `rank`.

    `weight` counts the failures of every section, and goes on from one search to the next: questions are asked where failures were.
    `stop` is asked now and then, and ends the search when true.
    """
    walk = _Walk(problem, capacity, rank, weight, pruning)
    everything = list(range(len(problem.size)))
    start = State([0] * len(everything), [0] * len(problem.sections), [sum(problem.size[i] for i in s) for s in problem.sections])
    if not walk.fits(start):
        return Answer(Verdict.IMPOSSIBLE, {}, 0)
    offsets: dict[int, int] = {}
    choices = [Choice(start, everything, 0, [], after=start, parts=walk.split(everything))]
    tried = 0
    while choices:
        choice = choices[-1]
        if choice.parts is not None and choice.after is not None:
            if choice.parts:
                choices.append(walk.ask(choice.after, choice.parts.pop()))
            else:  # solved
                if choice.option != BARE:
                    offsets[choice.option] = choice.before.low[choice.option]
                choices.pop()
            continue
        while choice.options and choice.parts is None:
            tried += 1
            if tried > budget or (tried % 64 == 0 and stop()):
                return Answer(Verdict.STOPPED, {}, tried)
            walk.take(choice)
        if choice.parts is None:
            choices.pop()
            if not choices:
                return Answer(Verdict.IMPOSSIBLE, {}, tried)
            choices[-1].parts = None
    return Answer(Verdict.FOUND, offsets, tried)


class _Walk:
    """The moves of one search. Options stand in a Choice last first."""

    def __init__(self, problem: Problem, capacity: int, rank: Sequence[int], weight: list[float], pruning: Pruning) -> None:
        self.problem = problem
        self.capacity = capacity
        self.rank = rank
        self.weight = weight
        self.pruning = pruning

    def fits(self, state: State) -> bool:
        over = any(size > self.capacity for size in self.problem.size)
        return not over and not (self.pruning.floors and any(rest > self.capacity for rest in state.rest))

    def split(self, part: list[int]) -> list[list[int]]:
        """Parts that share no section, the smallest last, for it is taken first."""
        if not self.pruning.parts:
            return [part] if part else []
        first, last = self.problem.first, self.problem.last
        parts: list[list[int]] = []
        end = -1
        for i in sorted(part, key=first.__getitem__):
            if first[i] >= end:
                parts.append([])
            parts[-1].append(i)
            end = max(end, last[i])
        return sorted(parts, key=len, reverse=True)

    def ask(self, state: State, part: list[int]) -> Choice:
        """The section of a valley with the fewest options for its failures so far; of equals the first."""
        low, floor = state.low, state.floor
        if len(part) == 1:
            return Choice(state, part, 0, [part[0]])
        begin, end = min(self.problem.first[i] for i in part), max(self.problem.last[i] for i in part)
        best, section = float("inf"), begin
        left = FAR
        at = begin
        while at < end:
            level, stop = floor[at], at + 1
            while stop < end and floor[stop] == level:
                stop += 1
            if level < left and (stop == end or floor[stop] > level):
                for s in range(at, stop):
                    options = [low[i] for i in self.problem.sections[s]].count(level) + (level + state.rest[s] < self.capacity)
                    score = options / sqrt(self.weight[s])
                    if score < best:
                        best, section = score, s
            left, at = level, stop
        here = [i for i in self.problem.sections[section] if low[i] == floor[section]]
        here.sort(key=self.rank.__getitem__, reverse=True)
        if self.pruning.twins:
            here = self._without_twins(here)
        return Choice(state, part, section, [BARE, *here])

    def take(self, choice: Choice) -> None:
        """Try the next option: its parts are set if it does not fail at once."""
        choice.option = choice.options.pop()
        state = choice.after = choice.before.copy()
        if choice.option == BARE:
            if self._leave_bare(state, choice.section):
                choice.parts = [choice.part]
        elif self._place(state, choice.option):
            choice.parts = self.split([i for i in choice.part if i != choice.option])

    def _place(self, state: State, placed: int) -> bool:
        """Put a buffer where it can lie at the lowest, and lift all that shares a section with it above it."""
        problem, low, rest = self.problem, state.low, state.rest
        size = problem.size[placed]
        top = low[placed] + size
        low[placed] = FAR
        touched = set(range(problem.first[placed], problem.last[placed]))
        for s in touched:
            rest[s] -= size
        return all(low[i] >= top or self._lift(state, i, top, touched) for i in problem.overlaps[placed]) and self._settle(state, touched)

    def _leave_bare(self, state: State, section: int) -> bool:
        """Nothing lies at the floor of this section: what could, rests on something that is not placed yet, and that is above the floor."""
        problem, low = self.problem, state.low
        level = state.floor[section]
        lifted: list[tuple[int, int]] = []
        lowest = FAR
        for i in problem.sections[section]:
            if low[i] == level:
                onto = level + 1
                if self.pruning.support:
                    onto = min((low[j] + problem.size[j] for j in problem.overlaps[i]), default=FAR)
                lifted.append((i, onto))
                lowest = min(lowest, onto)
            else:
                lowest = min(lowest, low[i])
        if lowest >= FAR or (self.pruning.floors and lowest + state.rest[section] > self.capacity):
            self.weight[section] += 1
            return False
        touched = {section}
        return all(self._lift(state, i, onto, touched) for i, onto in lifted) and self._settle(state, touched)

    def _lift(self, state: State, i: int, least: int, touched: set[int]) -> bool:
        """Buffer i lies no lower than `least`. Adds the sections whose floor it may have been."""
        problem, floor = self.problem, state.floor
        old, alignment = state.low[i], problem.alignment[i]
        least = -(-least // alignment) * alignment
        if least + problem.size[i] > self.capacity:
            self.weight[problem.first[i]] += 1
            return False
        state.low[i] = least
        touched.update(s for s in range(problem.first[i], problem.last[i]) if floor[s] == old)
        return True

    def _settle(self, state: State, touched: set[int]) -> bool:
        """Floors anew where they may have risen; False when what is left no longer fits above one."""
        low, rest = state.low, state.rest
        for s in touched:
            level = state.floor[s] = min(map(low.__getitem__, self.problem.sections[s]))
            if self.pruning.floors and rest[s] and level + rest[s] > self.capacity:
                self.weight[s] += 1
                return False
        return True

    def _without_twins(self, options: list[int]) -> list[int]:
        """Of buffers alike, the one that is tried first (the last in the list)."""
        problem = self.problem
        seen = {(problem.first[i], problem.last[i], problem.size[i], problem.alignment[i]): i for i in options}
        return [i for i in options if seen[problem.first[i], problem.last[i], problem.size[i], problem.alignment[i]] == i]
