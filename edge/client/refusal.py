"""Why nobody answers a request, as one error that lists all who were asked.

the user's, tenant's or model's quota   OverQuota (429) with the time to wait, RequestExceedsQuota when no waiting helps
a target is busy, the others are gone   QuotaExceeded (429) with the shortest time: somebody is there
all targets are gone                    CloudUnreachable (503)
policy or privacy                       RouteRefused (403)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...router.decision import Decision
from ...shared_protocol.errors import (
    CloudUnreachable,
    ContextOverflow,
    HybridError,
    OverQuota,
    QuotaExceeded,
    RequestExceedsQuota,
    RouteRefused,
    TemplateError,
)
from .answer_state import AnswerState
from .clouds import Cloud

CAPACITIES = ("quota.capacity", "quota.tenant_capacity", "quota.model_capacity", "quota.budget")


@dataclass(slots=True)
class Failures:
    """What has failed for one request."""

    edge: HybridError | None = None
    clouds: dict[Cloud, list[HybridError]] = field(default_factory=dict)
    undrafted: set[Cloud] = field(default_factory=set)  # targets that do not take part in drafting
    count: int = 0  # attempts that have failed, of the policy's budget

    def told(self) -> list[str]:
        """One line for each that failed, the last word of each."""
        lines = [f"{cloud.name}: {errors[-1]}" for cloud, errors in self.clouds.items()]
        return lines if self.edge is None else [*lines, f"edge: {self.edge}"]


def refusal_of(answer: AnswerState, decision: Decision, failures: Failures) -> HybridError:
    """The error for a decision to refuse, or for one that the budget of attempts no longer allows."""
    services = answer.services
    overflow = _overflow(answer, decision, failures)
    if overflow is not None:
        return overflow
    if isinstance(failures.edge, TemplateError) and (decision.reason == "edge_unavailable" or not services.clouds.targets):
        return failures.edge
    spent = decision.route != "refuse"
    why = f"{failures.count} attempts have failed, all that fallback.attempts allows" if spent else decision.why
    told = failures.told()
    if spent or decision.reason in ("over_quota", "cloud_unreachable"):
        told += services.clouds.resting(failures.clouds)
    refusal = _typed(answer, decision, failures, f"{why} ({'; '.join(told)})" if told else why)
    causes = [errors[-1] for errors in failures.clouds.values()]
    refusal.__cause__ = next(iter([*causes, *([failures.edge] if failures.edge else [])]), None)
    return refusal


def _typed(answer: AnswerState, decision: Decision, failures: Failures, message: str) -> HybridError:
    busy = answer.services.clouds.busy(failures.clouds)
    if decision.route != "refuse" and not failures.clouds:
        return RouteRefused(message, reason="edge_unavailable", rule="fallback.attempts")
    if decision.route != "refuse" or decision.quota_rule == "quota.cloud":
        return CloudUnreachable(message) if busy is None else QuotaExceeded(message, retry_after_s=busy.retry_after_s)
    if decision.reason == "over_quota":
        if decision.quota_rule in CAPACITIES:
            return RequestExceedsQuota(message, hint="ask for fewer tokens: lower max_tokens or shorten the prompt")
        return OverQuota(message, reason="over_quota", rule=decision.rule, retry_after_s=decision.retry_after_s)
    if decision.reason == "cloud_unreachable":
        waits = [error.retry_after_s for errors in failures.clouds.values() for error in errors if error.retry_after_s is not None]
        return CloudUnreachable(message, retry_after_s=min(waits, default=None))
    return RouteRefused(message, reason=decision.reason, rule=decision.rule)


def _overflow(answer: AnswerState, decision: Decision, failures: Failures) -> ContextOverflow | None:
    """The numbers, when all that is wrong is that the request fits no context there is."""
    services = answer.services
    asked = decision.prompt_tokens + (answer.request.max_tokens or 1)
    limits = [] if services.device is None or failures.edge is not None else [services.device.context]
    limits += [cloud.monitor.hoped.cloud_context or 0 for cloud in services.clouds.targets]
    alone = not services.clouds.targets and decision.reason == "cloud_unreachable"
    if (decision.reason == "too_long" or alone) and decision.scores.privacy == "public" and limits and asked > max(limits) > 0:
        return ContextOverflow(asked=asked, limit=max(limits))
    return None
