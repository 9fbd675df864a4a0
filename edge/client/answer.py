"""One request from decision to last token: decide, run the route, and decide again when a target fails.

    decide ── refuse ───────────────────────────► RouteRefused, CloudUnreachable
      ▲  └─── edge, cloud, cascade, speculative ► pieces of the answer
      └────── a target failed before the first piece: the same decision with that fact changed

A failed target is never asked twice for one request, since deciding again knows that it failed. No failure loosens privacy.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from ...router.decide import decide
from ...router.decision import Decision
from ...router.quota import QuotaView, Reservation, TokenBucket
from ...router.request import RouteContext
from ...router.verdict import Verdict
from ...shared_protocol.errors import ClientClosed, CloudUnreachable, ContextOverflow, HybridError, RouteRefused, TemplateError
from ...shared_protocol.runtime import DeviceState, LinkState
from ..piece import Piece
from .answer_state import AnswerState
from .routes import run_route
from .target import Target, TargetFailed, blame


class Answer:
    """Drives the state of one request; iterate `pieces` once."""

    def __init__(self, state: AnswerState, floor: Verdict) -> None:
        self.state = state
        self._floor = floor
        self._failures: dict[Target, HybridError] = {}
        self._bucket: TokenBucket | None = None
        self._reserved: Reservation | None = None

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """Raises RouteRefused, CloudUnreachable, or what makes the request unanswerable anywhere. After the first piece, a failure
        that the route cannot mend ends the answer: what was shown is never taken back, and never shown twice."""
        state = self.state
        try:
            await self._render()
            while True:
                decision = state.decision = await self._decide()
                if decision.route == "refuse":
                    raise self._refusal(decision)
                started = False
                try:
                    async with aclosing(run_route(state, decision)) as pieces:
                        async for piece in pieces:
                            started = True
                            state.spans += piece.spans
                            yield piece
                    return
                except TargetFailed as failed:
                    if started or state.services.closed:
                        raise failed.error from failed
                    self._note(failed)
        except Exception as error:
            if state.services.closed:  # whatever it is, that is why
                raise ClientClosed from error
            raise
        finally:
            self._settle()

    async def _render(self) -> None:
        """The prompt by the device's model, which may have to be loaded for it. Raises what is wrong with how that was named."""
        device = self.state.services.device
        if device is None:
            return
        try:
            with blame("edge"):
                self.state.prompt_ids = await device.prompt_ids(self.state.request)
        except TemplateError as error:
            self._failures["edge"] = error
        except TargetFailed as failed:
            self._note(failed)

    async def _measure(self) -> None:
        try:
            with blame("edge"):
                await self.state.services.measure_device()
        except TargetFailed as failed:
            self._note(failed)

    def _note(self, failed: TargetFailed) -> None:
        self._failures[failed.target] = failed.error
        if failed.target == "cloud" and failed.error.status != 429:
            self.state.services.monitor.lost()

    async def _decide(self) -> Decision:
        """Decide as if the cloud were there; look whether it is only when it would have a part in the answer. So a private prompt,
        a simple one and a refused one open no connection at all."""
        monitor = self.state.services.monitor
        while True:
            self._settle()
            decision = self._decide_with(monitor.hoped)
            if decision.cloud_tokens:
                await self._measure()
                decision = self._decide_with(await monitor.fresh(self.state.traffic))
            if not decision.cloud_tokens or self._reserve(decision.cloud_tokens):
                return decision

    def _decide_with(self, link: LinkState) -> Decision:
        services, request, ids = self.state.services, self.state.request, self.state.prompt_ids
        error = self._failures.get("cloud")
        over_quota = error is not None and error.status == 429
        if error is not None and not over_quota:
            link = replace(link, reachable=False)
        quota = services.quotas.view(request.user, services.clock())
        device = self._device()
        able = services.can_speculate and request.sampling.logprobs is None and "speculation" not in self._failures
        context = RouteContext(
            policy=services.policy,
            device=device,
            link=link,
            quota=QuotaView(0.0, quota.capacity, quota.refill_per_s) if over_quota else quota,
            count_tokens=None if ids is None else lambda _: len(ids),
            privacy_floor=self._floor,
            speculation=services.facts(link) if able and device.edge_available and services.can_draft else None,
        )
        return decide(request, context)

    def _device(self) -> DeviceState:
        """The device's state, and whether its model can answer this request."""
        services = self.state.services
        state = services.device_state.read()
        if services.device is None or "edge" in self._failures:
            return replace(state, edge_available=False)
        return replace(state, edge_context=services.device.context)

    def _reserve(self, tokens: int) -> bool:
        """False when other requests were quicker: then the decision no longer holds."""
        now = self.state.services.clock()
        self._bucket = self.state.services.quotas.bucket(self.state.request.user, now)
        self._reserved = self._bucket.reserve(tokens, now)
        return self._reserved is not None

    def _settle(self) -> None:
        """Charge what the cloud has computed so far, give back the rest."""
        if self._bucket is not None and self._reserved is not None:
            self._bucket.settle(self._reserved, self.state.cloud_used, self.state.services.clock())
            self._reserved, self.state.cloud_used = None, 0

    def _refusal(self, decision: Decision) -> HybridError:
        overflow = self._overflow(decision)
        if overflow is not None:
            return overflow
        edge = self._failures.get("edge")
        if isinstance(edge, TemplateError) and (decision.reason == "edge_unavailable" or self.state.services.cloud is None):
            return edge
        told = "; ".join(f"{target}: {error}" for target, error in self._failures.items())
        message = f"{decision.why} ({told})" if told else decision.why
        refusal: HybridError = RouteRefused(message, reason=decision.reason, rule=decision.rule)
        if decision.reason == "cloud_unreachable":
            refusal = CloudUnreachable(message)
        refusal.__cause__ = next(iter(self._failures.values()), None)
        return refusal

    def _overflow(self, decision: Decision) -> ContextOverflow | None:
        """The numbers, when all that is wrong is that the request fits no context there is."""
        services = self.state.services
        asked = decision.prompt_tokens + (self.state.request.max_tokens or 1)
        limits = [] if services.device is None or "edge" in self._failures else [services.device.context]
        if services.cloud is not None:
            limits += [services.monitor.hoped.cloud_context or 0]
        alone = services.cloud is None and decision.reason == "cloud_unreachable"
        if (decision.reason == "too_long" or alone) and decision.scores.privacy == "public" and limits and asked > max(limits) > 0:
            return ContextOverflow(asked=asked, limit=max(limits))
        return None
