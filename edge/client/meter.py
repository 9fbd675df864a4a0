"""The quota as one request meets it. A store on disk is asked in a thread of its own, and not waited for longer than the policy allows:
a slow store must not hold up answers that need no cloud."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from ...router.policy.tables import QuotaPolicy
from ...router.quota import QuotaView
from ...router.quota.account import Account, Hold, Use
from ...router.quota.quotas import Quotas

T = TypeVar("T")


DEADLINE_S = 1.0  # a store that takes longer counts as broken


class Meter:
    """`clock` is the quota's own: one that outlives the process where its store does."""

    def __init__(self, quotas: Quotas, clock: Callable[[], float], *, on_disk: bool, deadline_s: float = DEADLINE_S) -> None:
        self._quotas = quotas
        self._clock = clock
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="hybrid-quota") if on_disk else None
        self._deadline_s = deadline_s
        self._closed = False
        self._stuck: Future[Any] | None = None  # what has not come back

    def change(self, policy: QuotaPolicy) -> None:
        self._quotas.change(policy)

    async def view(self, account: Account) -> QuotaView:
        quotas, now = self._quotas, self._clock()
        return await self._run(lambda: quotas.view(account, now), lambda: quotas.view_without_store(account, now))

    async def rejected(self, account: Account) -> QuotaView:
        quotas, now = self._quotas, self._clock()
        return await self._run(lambda: quotas.rejected(account, now), quotas.rejected_without_store)

    async def reserve(self, account: Account, use: Use) -> Hold | None:
        """A reservation that comes when it is no longer waited for is given back."""
        quotas, now = self._quotas, self._clock()

        def unwanted(late: Future[Hold | None]) -> None:
            if late.exception() is None and (hold := late.result()) is not None:
                quotas.settle(hold, Use(), now)

        work, without = lambda: quotas.reserve(account, use, now), lambda: quotas.reserve_without_store(account, use, now)
        return await self._run(work, without, unwanted)

    def settle(self, hold: Hold, use: Use) -> None:
        """Waits for nobody: also in the middle of a cancellation."""
        if self._worker is None or self._closed:  # an answer may end after its client was closed
            self._quotas.settle(hold, use, self._clock())
        else:
            self._worker.submit(self._quotas.settle, hold, use, self._clock())

    def close(self) -> None:
        """Once all is settled; what a stuck store keeps is not waited for."""
        self._closed = True
        if self._worker is not None:
            self._worker.shutdown(wait=self._stuck is None or self._stuck.done())

    async def _run(self, work: Callable[[], T], without: Callable[[], T], unwanted: Callable[[Future[T]], object] = lambda late: None) -> T:
        if self._worker is None or self._closed:
            return work()
        if self._stuck is not None and not self._stuck.done():
            return without()
        running = self._worker.submit(work)
        try:
            done, _ = await asyncio.wait([asyncio.wrap_future(running)], timeout=self._deadline_s)
        except asyncio.CancelledError:
            running.add_done_callback(unwanted)
            raise
        if done:
            return running.result()
        self._stuck = running
        running.add_done_callback(unwanted)
        return without()
