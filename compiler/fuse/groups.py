"""Operations gathered into groups, none of which ever waits for itself."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


class Groups:
    """Starts with every operation alone. Sets of groups are the bits of an integer: a graph has some hundred operations, and each join
    then costs as many `or`s.
    """

    def __init__(self, predecessors: Sequence[frozenset[int]]) -> None:
        count = len(predecessors)
        self.of = list(range(count))  # an operation's group is named by one of its operations
        self.members: dict[int, tuple[int, ...]] = {number: (number,) for number in range(count)}
        self._successors: list[set[int]] = [set() for _ in range(count)]
        self._reach = [0] * count  # groups that wait for this one
        for number, needed in enumerate(predecessors):
            for before in needed:
                self._successors[before].add(number)
        for number in reversed(range(count)):
            for after in self._successors[number]:
                self._reach[number] |= 1 << after | self._reach[after]

    def alone(self, number: int) -> bool:
        return len(self.members[self.of[number]]) == 1

    def may_join(self, *groups: int) -> bool:
        """Whether groups can be one: no other waits for one of them while one of them waits for it."""
        mask = sum(1 << group for group in groups)
        between = set().union(*(self._after(group) for group in groups)) - set(groups)
        return not any(self._reach[group] & mask for group in between)

    def join(self, *groups: int) -> None:
        """Make groups one, under the first one's name. They may join."""
        name, *others = groups
        mask = sum(1 << group for group in groups)
        self.members[name] = tuple(sorted(member for group in groups for member in self.members[group]))
        for group in others:
            self._reach[name] |= self._reach[group]
            del self.members[group]
        for member in self.members[name]:
            self.of[member] = name
        self._reach[name] &= ~mask
        for group in self.members:
            if self._reach[group] & mask:
                self._reach[group] |= self._reach[name] | 1 << name

    def in_order(self) -> list[tuple[int, ...]]:
        """The groups' operations, each group after those it waits for, and else as near to the first order as that allows."""
        waiting = dict.fromkeys(self.members, 0)
        after = {group: self._after(group) for group in self.members}
        for groups in after.values():
            for group in groups:
                waiting[group] += 1
        ready = [(self.members[group][0], group) for group, count in waiting.items() if not count]
        heapq.heapify(ready)
        result = []
        while ready:
            _, group = heapq.heappop(ready)
            result.append(self.members[group])
            for later in after[group]:
                waiting[later] -= 1
                if not waiting[later]:
                    heapq.heappush(ready, (self.members[later][0], later))
        return result

    def _after(self, group: int) -> set[int]:
        return {self.of[after] for member in self.members[group] for after in self._successors[member]} - {group}
