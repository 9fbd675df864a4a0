"""The cloud's targets, in the order in which they are asked, and which of them is asked next.

    first round    every target once, but for those that rest because they failed a short while ago
    retries        then those that failed but are not busy, again

A target that failed rests for `fallback.cooldown_s`; one that said 429 for as long as it said, `fallback.max_cooldown_s` at most. Nobody
waits for a target: while one rests, another answers, or the error says when to come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from ...router.policy.tables import FallbackPolicy
from ...shared_protocol.errors import HybridError, QuotaExceeded
from ...shared_protocol.runtime import LinkState
from ..learned import Learned
from ..transport.cloud import CloudClient
from ..transport.lane import Traffic
from ..transport.link_monitor import LinkMonitor


@dataclass(frozen=True, slots=True)
class CloudTarget:
    """One server to ask. `model`: what it is asked for where a call names none; `name`: what answers and errors call it."""

    url: str
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    name: str | None = None


@dataclass(slots=True, eq=False)
class Cloud:
    """A target, and all that is known of it."""

    name: str
    client: CloudClient
    monitor: LinkMonitor
    model: str | None = None
    busy_until: float = float("-inf")
    sends_messages: bool = False  # to draft on, since it has another template
    can_speculate: bool = True  # until it says that its vocabulary is another one
    learned: Learned = field(default_factory=Learned)
    served: str | None = None  # the model that all of this was learned of

    async def fresh(self, traffic: Traffic) -> LinkState:
        """The link as a probe sees it. A server that serves another model than before is as one that nothing is known of."""
        link = await self.monitor.fresh(traffic)
        if self.served is not None and self.client.model != self.served:
            self.sends_messages, self.can_speculate, self.learned = False, True, Learned()
        self.served = self.client.model
        return link


class Clouds:
    """All targets of a client."""

    def __init__(self, targets: Sequence[Cloud], policy: FallbackPolicy, clock: Callable[[], float]) -> None:
        self.targets = targets
        self._policy = policy
        self._clock = clock

    def change(self, policy: FallbackPolicy) -> None:
        """How often and how long, from now on."""
        self._policy = policy

    def next(self, failed: Mapping[Cloud, Sequence[HybridError]]) -> Cloud | None:
        """Whom to ask, after what has failed for this request; None: nobody is left."""
        for target in self.targets:
            if target not in failed and not self._rests(target):
                return target
        for tried in range(1, self._policy.retries + 1):
            for target in self.targets:
                errors = failed.get(target, ())
                if len(errors) == tried and errors[-1].status >= 500:
                    target.monitor.look_again()
                    return target
        return None

    def note(self, target: Cloud, error: HybridError) -> None:
        """It failed: it rests."""
        if error.status == 429:
            told = self._policy.cooldown_s if error.retry_after_s is None else error.retry_after_s
            target.busy_until = max(target.busy_until, self._clock() + min(told, self._policy.max_cooldown_s))
        elif error.status >= 500:
            target.monitor.lost()

    def busy(self, failed: Mapping[Cloud, Sequence[HybridError]]) -> QuotaExceeded | None:
        """The targets that ask to wait, as one error with the shortest time; None when none does, so that those that are gone are not
        taken for busy ones."""
        said = [errors[-1].retry_after_s for errors in failed.values() if errors and errors[-1].status == 429]
        now = self._clock()
        rest: list[float | None] = [t.busy_until - now for t in self.targets if t not in failed and t.busy_until > now]
        waits = [wait for wait in said + rest if wait is not None]
        return QuotaExceeded("the cloud is busy", retry_after_s=min(waits, default=None)) if said or rest else None

    def resting(self, failed: Mapping[Cloud, Sequence[HybridError]]) -> list[str]:
        """Why targets were not asked, for an error that lists all."""
        now = self._clock()
        told = [(t, "busy" if t.busy_until > now else "gone") for t in self.targets if t not in failed and self._rests(t)]
        return [f"{target.name}: not asked again yet, it was {why} a short while ago" for target, why in told]

    @property
    def away(self) -> LinkState:
        """The link when no target can be asked."""
        return replace(self.targets[0].monitor.hoped, reachable=False) if self.targets else LinkState()

    @property
    def bytes_sent(self) -> int:
        return sum(target.client.bytes_sent for target in self.targets)

    async def close(self) -> None:
        for target in self.targets:
            await target.client.close()

    def _rests(self, target: Cloud) -> bool:
        return target.monitor.is_lost or self._clock() < target.busy_until


def targets_of(cloud: str | CloudTarget | Sequence[str | CloudTarget] | None, api_key: str | None) -> list[CloudTarget]:
    """The targets as a caller may write them, each with a name: `cloud` when there is one, else its host and port."""
    listed = [] if cloud is None else [cloud] if isinstance(cloud, str | CloudTarget) else list(cloud)
    made = [one if isinstance(one, CloudTarget) else CloudTarget(one, api_key) for one in listed]
    names: list[str] = []
    for one in made:
        name = one.name or ("cloud" if len(made) == 1 else urlsplit(one.url).netloc.rpartition("@")[2] or "cloud")
        while name in names:
            name += "'"
        names.append(name)
    return [CloudTarget(one.url, one.api_key, one.model, name) for one, name in zip(made, names, strict=True)]
