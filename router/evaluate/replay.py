"""A policy's decision on every row of a file, and what those decisions add up to. Nothing is sent and nothing is generated.

A device, a reachable cloud and a user with a full quota are assumed, as `hybrid route PROMPT` does; the time is the row's own, or not
known. A cascade counts as a cloud call unless a hand-over rate is given: whether the device's answer will be doubtful cannot be known
before it is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...shared_protocol.runtime import LinkState
from ..costs import cloud_price, cloud_seconds, edge_seconds, priced
from ..decide import decide
from ..decision import Decision, Reason, Route
from ..plan import SpeculationFacts
from ..policy.policy import Policy
from ..quota.quotas import full_view
from ..redact.mapping import RedactionMapping
from ..request import Moment, RouteContext
from ..verdict import Verdict
from .rows import Row

ROUTES: tuple[Route, ...] = ("edge", "cascade", "speculative", "cloud", "refuse")
NO_OUTCOMES = "the rows have no scores of the two models"
NO_PRICES = "no prices are given: [price] in the policy, or --fact price_in=NUMBER and price_out, of a million tokens"
NO_TIMES = "no times are given: --seconds NAME=NUMBER and --fact rtt_ms=NUMBER"


def usual(policy: Policy) -> RouteContext:
    """What `hybrid route` assumes around a request."""
    return RouteContext(
        policy=policy,
        link=LinkState(reachable=True),
        quota=full_view(policy.quota),
        speculation=SpeculationFacts(),
    )


@dataclass(frozen=True, slots=True)
class World:
    """What is assumed around a policy. `handover`: the share of cascades that the cloud answers in the end, 1 at worst."""

    around: Callable[[Policy], RouteContext] = usual
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
    cloud_price: float | None  # what the cloud would take for it
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
    context = world.around(policy)
    return [_decided(row, decide(row.request, _of_its_own(at(row.time, context))), context, world.handover) for row in rows]


def _of_its_own(context: RouteContext) -> RouteContext:
    """Each row is a conversation."""
    return replace(context, redaction=RedactionMapping.of_a_dry_run())


def at(time: float | None, context: RouteContext) -> RouteContext:
    """`context` at `time`, seconds since 1970, read as UTC. A time that is not known changes nothing."""
    if time is None:
        return context
    days, seconds = divmod(time, 86_400)
    return replace(context, moment=Moment(int(seconds // 3600), int(days + 3) % 7 + 1))  # 1970 began on a Thursday, day 4


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


def _decided(row: Row, decision: Decision, context: RouteContext, handover: float) -> Decided:
    calls = {"cloud": 1.0, "speculative": 1.0, "cascade": handover}.get(decision.route, 0.0)
    output = (row.request.max_tokens or context.policy.quota.assumed_output) * row.request.sampling.n
    price = cloud_price(priced(context.costs, context.policy.price, row.request.model), decision.prompt_tokens, output)
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
        seconds=_seconds(decision, output, context, handover),
        cost=0.0 if calls == 0 else None if price is None else calls * price,
        cloud_price=price,
        time=row.time,
        weak=row.weak,
        strong=row.strong,
    )


def _seconds(decision: Decision, output: int, context: RouteContext, handover: float) -> float | None:
    """Of the route: a cloud that streams, or the device's answer and then, as often as it is handed over, the cloud's."""
    if decision.route == "refuse":
        return 0.0
    local = edge_seconds(context.costs, decision.prompt_tokens, output)
    if decision.route == "edge":
        return local
    remote = cloud_seconds(context.costs, decision.prompt_tokens, output, context.link.rtt_s)
    if decision.route == "cloud":
        return remote
    if decision.route == "cascade":
        return None if local is None or remote is None else local + handover * remote
    drafted = decision.expected["speculative"]
    return None if drafted is None else drafted.seconds
