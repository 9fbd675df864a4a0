"""What is kept of a decision when live traffic is recorded: numbers, closed sets of words, and hashes. No text, and nothing that leads
back to one without the key, which never leaves the installation.

`redecide` asks another policy about a record: its rules, thresholds, limits and quota behaviour are decided anew, by the stages of
`decide`, with the surroundings as they were. Three things are taken as recorded: what privacy found, the complexity, and whether
drafting paid. A policy that changes how these are judged needs the prompts themselves: `hybrid route test`.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

import msgspec
from msgspec import Meta

from ..shared_protocol.json_lines import line_as
from ..shared_protocol.runtime import DeviceState, LinkState
from .capability import Out, cloud_out, edge_weak
from .complexity.complexity import Parts
from .complexity.reading import Said
from .costs import CostModel
from .decide import choose
from .decision import Decision, Reason, Route
from .facts import Facts
from .plan import Plan
from .policy.policy import Policy
from .policy.rules import first_match
from .policy.variables import VARIABLES, Scene, Values
from .privacy import Assessment
from .quota import QuotaView
from .request import RouteContext, RouteRequest
from .verdict import Verdict

VERSION: Literal[1] = 1
NAMES = ("user", "tenant")  # variables whose values are names: kept as hashes only, so that rules over them know nothing
Number = bool | int | float | str


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a recording."""

    v: Literal[1]
    time: float  # seconds since 1970
    prompt: str  # keyed hash: equal for equal conversations of one installation
    user: str  # keyed hash
    tenant: str | None  # keyed hash
    policy: str  # hash
    route: Route
    reason: Reason
    rule: str
    verdict: Verdict
    kinds: dict[str, int]  # findings of each kind
    failed: Annotated[int, Meta(ge=0, le=10_000)]  # detectors
    replaced: dict[str, int]  # placeholders of each kind
    parts: Parts
    output: int  # tokens, asked for or assumed
    drafts: bool  # drafting paid, or would have
    values: dict[str, Number]  # of the rules' variables that were known


def record_of(request: RouteRequest, context: RouteContext, decision: Decision, *, key: bytes, time: float) -> Record:
    """`context`: the one that `decision` was made in."""
    private = decision.assessment.verdict in ("local_only", "block")
    output = (request.max_tokens or context.policy.quota.assumed_output) * request.sampling.n
    values = Values(Scene(request, Said(request), context, decision.prompt_tokens, output, decision.scores.complexity, private))
    known = {name: value for name in VARIABLES if name not in NAMES and (value := values[name]) is not None}
    return Record(
        v=VERSION,
        time=time,
        prompt=keyed(key, "prompt", "\x00".join(request.texts())),
        user=keyed(key, "user", request.user),
        tenant=None if request.tenant is None else keyed(key, "tenant", request.tenant),
        policy=context.policy.hash,
        route=decision.route,
        reason=decision.reason,
        rule=decision.rule,
        verdict=decision.assessment.verdict,
        kinds=dict(decision.assessment.findings),
        failed=len(decision.assessment.failed),
        replaced=dict(decision.assessment.replaced),
        parts=decision.parts,
        output=output,
        drafts=decision.plan is not None and decision.plan.mode == "sync",
        values=known,
    )


def keyed(key: bytes, what: str, text: str) -> str:
    """HMAC-SHA-256, 16 hex digits. `what` keeps a user who is called as a prompt apart from it."""
    return hmac.new(key, f"{what}\x00{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:16]


def decode(line: bytes | str, where: str) -> Record:
    """Raises InvalidRequest that begins with `where`."""
    return line_as(Record, line, where, what="record of a decision", hint="name a file that record= or `hybrid route record` wrote")


@dataclass(frozen=True, slots=True)
class Again:
    """What another policy says of a record."""

    route: Route
    reason: Reason
    rule: str
    why: str


def redecide(record: Record, policy: Policy) -> Again:
    """The decision of `policy`. Never raises for a record that `decode` has accepted."""
    known, context = record.values, _context(record, policy)
    tokens = int(_number(known, "tokens") or 0)
    rules = first_match(policy.compiled_rules, _Known(known))
    assessment = Assessment(record.verdict, record.kinds, ("a detector",) * record.failed, record.replaced)
    plan = Plan("sync" if record.drafts and policy.speculation.mode != "off" else "plain", 0, why="as recorded")
    facts = Facts(
        parts=record.parts,
        complexity=float(_number(known, "complexity") or 0.0),
        prompt_tokens=tokens,
        counted=False,
        output_tokens=record.output,
        costs=context.costs,
        edge_out=None if context.device.edge_available else _gone(record),
        edge_weak=edge_weak(tokens, context),
        cloud_out=cloud_out(0, context),
        plan=plan,
        scene=Scene(_NOBODY, Said(_NOBODY), context, tokens, record.output, 0.0, True),
        rules=rules,
    )
    choice = choose(facts, assessment, context, private=record.verdict in ("local_only", "block"))
    return Again(choice.route, choice.reason, choice.rule, choice.why)


_NOBODY = RouteRequest.of("-")


class _Known(Values):
    """The recorded values, where rules ask for them."""

    def __init__(self, known: dict[str, Number]) -> None:
        super().__init__(cast(Scene, None))
        self.update(known)

    def __missing__(self, name: str) -> None:
        return None


def _context(record: Record, policy: Policy) -> RouteContext:
    """The surroundings as they were. What was not recorded, since it was not known, is unknown again."""
    known = record.values
    per_million = {name: None if (price := _number(known, name)) is None else price / 1_000_000 for name in ("price_in", "price_out")}
    left = _number(known, "quota_left")
    room = _number(known, "context_left")
    device = DeviceState(
        edge_available=known.get("edge_available") is True and (room is None or room >= 0),
        battery=_number(known, "battery"),
        thermal_headroom=_number(known, "thermal_headroom"),
    )
    context = RouteContext(
        policy=policy, device=device, link=LinkState(reachable=known.get("reachable") is True), costs=CostModel(**per_million)
    )
    return context if left is None else replace(context, quota=QuotaView(left, float("inf"), 0.0))


def _gone(record: Record) -> Out:
    if record.values.get("edge_available") is True:
        return Out("too_long", "capability.edge_context", "prompt and answer did not fit the device's context")
    return Out("edge_unavailable", "capability.edge", "no model answered on the device")


def _number(known: dict[str, Number], name: str) -> float | None:
    value = known.get(name)
    return None if value is None or isinstance(value, str) else float(value)
