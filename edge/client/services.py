"""What all requests of one client share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ...router.plan import SpeculationFacts
from ...router.policy import Policy
from ...router.quota import Quotas
from ..device import Device
from ..device_state import DeviceReader
from ..drafter import Mutate
from ..transport.cloud import CloudClient
from ..transport.link_monitor import LinkMonitor


@dataclass(slots=True)
class Services:
    policy: Policy
    quotas: Quotas
    device: Device | None
    cloud: CloudClient | None
    monitor: LinkMonitor
    device_state: DeviceReader
    clock: Callable[[], float]  # seconds, monotonic
    facts: SpeculationFacts
    draft_len: int | None = None  # overrides the plan's
    on_link_loss: Literal["continue_local", "fail"] = "continue_local"
    mutate: Callable[[], Mutate] | None = None  # corrupts drafts, for tests of exactness
    closed: bool = False  # the client was: whatever still runs ends
    sends_messages: bool = False  # to draft on, since the cloud has another template
    can_speculate: bool = True  # until the cloud says that its vocabulary is another one

    @property
    def can_draft(self) -> bool:
        return self.device is not None and self.device.can_draft
