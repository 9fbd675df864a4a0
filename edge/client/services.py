"""What all requests of one client share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ...router.confidence.gate import Gate, check_states, load_gate
from ...router.plan import SpeculationFacts, draft_curve
from ...router.policy.policy import Policy
from ...router.policy.source import PolicySource
from ...router.policy.tables import ConfidencePolicy, SpeculationPolicy
from ...router.request import Moment
from ...shared_protocol.errors import ConfigError, ContextOverflow
from ...shared_protocol.model_card import ModelCard
from ...shared_protocol.runtime import LinkState
from ..device import Device
from ..device_state import DeviceReader
from ..drafter import Mutate
from .clouds import Cloud, Clouds
from .meter import Meter
from .recorder import Recorder

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Services:
    source: PolicySource
    meter: Meter
    device: Device | None
    clouds: Clouds
    device_state: DeviceReader
    clock: Callable[[], float]  # seconds, monotonic
    wall: Callable[[], float]  # seconds since 1970
    given: SpeculationFacts  # what the application knows; the rest is learned
    draft_len: int | None = None  # overrides the plan's
    on_link_loss: Literal["continue_local", "fail"] = "continue_local"
    mutate: Callable[[], Mutate] | None = None  # corrupts drafts, for tests of exactness
    recorder: Recorder | None = None  # keeps decisions, without text
    closed: bool = False  # the client was: whatever still runs ends
    draft_s: tuple[float, ...] | None = None  # entry k: seconds in which the device drafts k tokens; None: not measured yet
    applied: Policy | None = None  # whose limits the meter and the targets follow
    gate: tuple[ConfidencePolicy, Gate | str | None] | None = None  # as it was read for this policy

    def policy(self) -> Policy:
        """The one in force now. A request asks once, and keeps it to its end."""
        policy = self.source.current(self.clock())
        if policy is not self.applied:
            self.meter.change(policy.quota)
            self.clouds.change(policy.fallback)
            self.applied = policy
        return policy

    def moment(self) -> Moment:
        """Local time, for the rules of the policy."""
        now = datetime.fromtimestamp(self.wall())
        return Moment(now.hour, now.isoweekday())

    def gate_of(self, card: ModelCard, policy: ConfidencePolicy, hidden_size: int | None) -> Gate | str | None:
        """The policy's gate for the device's model, or why it cannot be used; None when the policy names none. Read once.

        `hidden_size`: of the states that the runtime gives, which a probe reads; None: it gives none.
        """
        if self.gate is None or self.gate[0] != policy:
            self.gate = policy, _read_gate(card, policy, hidden_size)
        return self.gate[1]

    @property
    def can_draft(self) -> bool:
        return self.device is not None and self.device.can_draft

    def facts(self, cloud: Cloud, link: LinkState) -> SpeculationFacts:
        """What is known of drafting with this target now; what the application says of it goes before what was learned."""
        given = self.given
        draft_s = self.draft_s if given.draft_s is None else given.draft_s
        learned = cloud.learned.facts(rtt_s=link.rtt_s, bandwidth_bytes_s=link.bandwidth_bytes_s, draft_s=draft_s)
        return SpeculationFacts(
            learned.rtt_s,
            learned.bandwidth_bytes_s if given.bandwidth_bytes_s is None else given.bandwidth_bytes_s,
            draft_s,
            learned.verify_s if given.verify_s is None else given.verify_s,
            learned.acceptance if given.acceptance is None else given.acceptance,
            given.queue_s,
        )

    async def measure_device(self, drafting: SpeculationPolicy) -> None:
        """How long the device takes to draft, once, if `auto` will ask. A device that is busy is measured another time: nobody waits."""
        device = self.device
        if drafting.mode != "auto" or self.draft_s is not None or self.given.draft_s is not None:
            return
        if device is None or not self.can_draft or device.busy:
            return
        async with device.turn() as session:
            with suppress(ContextOverflow):  # what is held leaves no room; the next answer may hold less
                costs = await device.run(lambda: session.held.cost_curve(2))
                self.draft_s = draft_curve(costs.tolist(), drafting.max_draft)


def _read_gate(card: ModelCard, policy: ConfidencePolicy, hidden_size: int | None) -> Gate | str | None:
    try:
        gate = load_gate(policy.gate, card, policy) if policy.gate else None
        check_states(gate, policy, card, hidden_size)
        return gate
    except ConfigError as error:
        log.warning("no answer of the device is kept by a cascade: %s", error)
        return str(error)
