"""A policy's decision on every row of a file, and what those decisions add up to. Nothing is sent and nothing is generated.

A device, a reachable cloud and a user with a full quota are assumed, as `hybrid route PROMPT` does. A cascade counts as a cloud call
unless a hand-over rate is given: whether the device's answer will be doubtful cannot be known before it is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...shared_protocol.runtime import LinkState
from ..costs import CostModel, cloud_price, edge_seconds
from ..decide import decide
from ..decision import Decision, Reason, Route
from ..plan import SpeculationFacts
from ..policy import Policy
from ..quota import QuotaView
from ..request import RouteContext
from ..verdict import Verdict
from .rows import Row

ROUTES: tuple[Route, ...] = ("edge", "cascade", "speculative", "cloud", "refuse")


@dataclass(frozen=True, slots=True)
class World:
    """What is assumed around the policy. `handover`: the share of cascades that the cloud answers in the end, 1 at worst."""

    costs: CostModel = field(default_factory=CostModel)
    rtt_s: float | None = None
    handover: float = 1.0


@dataclass(frozen=True, slots=True)
class Decided:
    """One row's decision, without any of its words. `seconds` and `cost` are None where no number of the world says them."""

    id: str
    group: str
    route: Route
    reason: Reason
    rule: str
    why: str
    complexity: float
    privacy: Verdict
    tokens: int  # of the prompt
    cloud_calls: float  # 0..1: 1 for cloud and speculative, the hand-over rate for a cascade
    cloud_tokens: float  # expected, prompt and answer
    seconds: float | None
    cost: float | None
    time: float | None
    weak: float | None
    strong: float | None

    @property
    def quality(self) -> float | None:
        """The score expected of whoever answers; a refusal answers nothing. None without outcomes."""
        if self.weak is None or self.strong is None:
            return None
        return 0.0 if self.route == "refuse" else self.weak + self.cloud_calls * (self.strong - self.weak)


@dataclass(frozen=True, slots=True)
class Shares:
    """What the decisions add up to. All shares are of all rows."""

    rows: int
    route: Mapping[str, float]
    reason: Mapping[str, float]
    rule: Mapping[str, float]
    privacy: Mapping[str, float]
    cloud_share: float  # calls of the cloud per row
    cloud_tokens: float  # per row
    cost: float | None  # per row; None when any row's is unknown
    seconds: float | None  # per row


def replay(rows: Sequence[Row], policy: Policy, world: World | None = None) -> list[Decided]:
    """In the order of the rows."""
    world = world or World()
    context = RouteContext(
        policy=policy,
        link=LinkState(reachable=True, rtt_s=world.rtt_s),
        quota=QuotaView(policy.quota.capacity, policy.quota.capacity, policy.quota.refill_per_s),
        costs=world.costs,
        speculation=SpeculationFacts(),
    )
    return [_decided(row, decide(row.request, context), policy, world) for row in rows]


def shares(decided: Sequence[Decided]) -> Shares:
    """`decided` holds at least one."""

    def share(of: Callable[[Decided], str]) -> dict[str, float]:
        return {name: count / len(decided) for name, count in Counter(map(of, decided)).most_common()}

    return Shares(
        rows=len(decided),
        route=share(lambda one: one.route),
        reason=share(lambda one: one.reason),
        rule=share(lambda one: one.rule),
        privacy=share(lambda one: one.privacy),
        cloud_share=sum(one.cloud_calls for one in decided) / len(decided),
        cloud_tokens=sum(one.cloud_tokens for one in decided) / len(decided),
        cost=mean_known([one.cost for one in decided]),
        seconds=mean_known([one.seconds for one in decided]),
    )


def mean_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if values and len(known) == len(values) else None


def _decided(row: Row, decision: Decision, policy: Policy, world: World) -> Decided:
    calls = {"cloud": 1.0, "speculative": 1.0, "cascade": world.handover}.get(decision.route, 0.0)
    output = (row.request.max_tokens or policy.quota.assumed_output) * row.request.sampling.n
    price = cloud_price(world.costs, decision.prompt_tokens, output)
    return Decided(
        id=row.id,
        group=row.group,
        route=decision.route,
        reason=decision.reason,
        rule=decision.rule,
        why=decision.why,
        complexity=decision.scores.complexity,
        privacy=decision.scores.privacy,
        tokens=decision.prompt_tokens,
        cloud_calls=calls,
        cloud_tokens=calls * (decision.prompt_tokens + output),
        seconds=_seconds(decision, output, world),
        cost=0.0 if calls == 0 else None if price is None else calls * price,
        time=row.time,
        weak=row.weak,
        strong=row.strong,
    )


def _seconds(decision: Decision, output: int, world: World) -> float | None:
    if decision.route == "refuse":
        return 0.0
    local = edge_seconds(world.costs, decision.prompt_tokens, output)
    if decision.route == "edge":
        return local
    whole = decision.expected[decision.route]
    if whole is None:
        return None
    return whole.seconds if decision.route != "cascade" or local is None else local + world.handover * (whole.seconds - local)
