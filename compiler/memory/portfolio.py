"""The planner to call: cheap ones first, and it ends where the bound is reached.

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

CROWD = 500  # buffers: of twice as many, a try takes twice as long, and an iteration of the climb four times


def plan(
    buffers: Sequence[Buffer],
    capacity: int | None = None,
    tries: int | None = None,
    seconds: float | None = None,
    clock: Callable[[], float] | None = None,
    enough: int | None = None,
) -> MemoryPlan:
    """The smallest plan found, verified. Ends early at the bound, and at `enough` bytes when given.

    Budgets count steps, so the same buffers give the same plan anywhere, unless `seconds` by `clock` run out first. `tries` of the exact
    search are by default as many as take some ten seconds at most.
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
    crowd = max(1, len(buffers) // CROWD)
    name, offsets, optimal = "", dict[str, int](), False
    for key, order in ORDERS.items():
        tried = order(buffers)
        if not name or height(buffers, tried) < height(buffers, offsets):
            name, offsets = f"greedy by {key}", tried
        if height(buffers, offsets) <= goal:
            break
    if height(buffers, offsets) > goal:
        found = exact(buffers, offsets, TRIES // crowd if tries is None else tries, stop=ended, enough=goal)
        name, offsets, optimal = _better(buffers, name, offsets, "exact search", found.offsets), found.offsets, found.optimal
    if height(buffers, offsets) > goal and not optimal and not ended():
        climbed = hill_climb(buffers, offsets, ITERATIONS // crowd**2)
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
