"""The planner to call: cheap ones first, and it ends where the bound is reached, which most graphs of language models do at once.

    greedy orders  ──►  exact search  ──►  hill climb from the best       each only if the bound is not reached yet
    milliseconds        tries counted      iterations counted

The search stands before the climb because it was measured so: where greedy orders fail, it finds in fewer steps what the climb never does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .bound import lower_bound
from .buffer import Buffer, by_id
from .errors import MemoryTooSmall
from .exact import TRIES, exact
from .greedy import ORDERS
from .hill_climb import ITERATIONS, hill_climb
from .plan import MemoryPlan, height, make_plan
from .search import never
from .verifier import verify_plan


def plan(
    buffers: Sequence[Buffer],
    capacity: int | None = None,
    tries: int = TRIES,
    seconds: float | None = None,
    clock: Callable[[], float] | None = None,
    enough: int | None = None,
) -> MemoryPlan:
    """The smallest plan found, verified. Ends early at the bound, and at `enough` bytes when given.

    Budgets count steps, so the same buffers give the same plan anywhere, unless `seconds` by `clock` run out first.
    Raises InvalidBuffers on two buffers of one id, MemoryTooSmall when no plan within `capacity` bytes was found.
    """
    by_id(buffers)
    bound = lower_bound(buffers)
    if capacity is not None and bound > capacity:
        raise MemoryTooSmall(
            f"{bound} bytes are live at the busiest step, the memory has {capacity}",
            needed=bound,
            capacity=capacity,
            hint=f"no plan can fit; give it at least {bound} bytes, or tile the work smaller",
        )
    goal = max(bound, enough or 0)
    ended = _ended(seconds, clock)
    name, offsets = min(((name, order(buffers)) for name, order in ORDERS.items()), key=lambda found: height(buffers, found[1]))
    name, optimal = f"greedy by {name}", False
    if height(buffers, offsets) > goal:
        found = exact(buffers, offsets, tries, stop=ended, enough=goal)
        name, offsets, optimal = _better(buffers, name, offsets, "exact search", found.offsets), found.offsets, found.optimal
    if height(buffers, offsets) > goal and not optimal and not ended():
        climbed = hill_climb(buffers, offsets, ITERATIONS)
        name, offsets = _better(buffers, name, offsets, "hill climb", climbed), climbed
    made = make_plan(buffers, offsets, name, optimal)
    verify_plan(made)
    if capacity is not None and made.size > capacity:
        raise MemoryTooSmall(
            f"the best plan found needs {made.size} bytes, the memory has {capacity}",
            needed=made.size,
            capacity=capacity,
            hint=f"{made.size} bytes suffice" + ("" if made.optimal else f", {made.bound} are the least; more tries may find a plan"),
        )
    return made


def _ended(seconds: float | None, clock: Callable[[], float] | None) -> Callable[[], bool]:
    if seconds is None or clock is None:
        return never
    end = clock() + seconds
    return lambda: clock() >= end


def _better(buffers: Sequence[Buffer], name: str, old: Mapping[str, int], other: str, new: Mapping[str, int]) -> str:
    """Who found the smaller plan; the earlier on a tie."""
    return other if height(buffers, new) < height(buffers, old) else name
