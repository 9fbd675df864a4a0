"""What is known of the way to the cloud: probed when a decision asks, remembered for a little while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from ...shared_protocol.runtime import LinkState
from .cloud import CloudClient
from .lane import Traffic


class LinkMonitor:
    """Opens no connection of its own accord: only `fresh` probes, and only when what is known is older than `keep_s`."""

    def __init__(self, cloud: CloudClient | None, clock: Callable[[], float], keep_s: float = 10.0, keep_lost_s: float = 10.0) -> None:
        self._cloud = cloud
        self._clock = clock
        self._keep_s = keep_s
        self._keep_lost_s = keep_lost_s
        self._state = LinkState()
        self._known_until = float("-inf")
        self._probing = asyncio.Lock()

    @property
    def hoped(self) -> LinkState:
        """The state if the cloud could be reached. A decision that needs no cloud even so needs no probe."""
        return replace(self._state, reachable=self._cloud is not None)

    @property
    def is_lost(self) -> bool:
        """Found gone a little while ago: it is not looked for again yet."""
        return not self._state.reachable and self._clock() < self._known_until

    async def fresh(self, traffic: Traffic) -> LinkState:
        if self._cloud is None:
            return LinkState()
        async with self._probing:
            if self._clock() >= self._known_until:
                state = await self._cloud.probe(traffic)
                # a cloud that is gone keeps the facts that were known of it
                self._set(state if state.reachable else replace(self._state, reachable=False))
        return self._state

    def lost(self) -> None:
        """A request found the cloud gone: the next ones need not find out for themselves."""
        self._set(replace(self._state, reachable=False))

    def look_again(self) -> None:
        """What is known of whether it can be reached is not good enough."""
        self._known_until = float("-inf")

    def _set(self, state: LinkState) -> None:
        self._state = state
        self._known_until = self._clock() + (self._keep_s if state.reachable else self._keep_lost_s)
