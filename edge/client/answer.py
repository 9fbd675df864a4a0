"""One request from decision to last token: decide, run the route, and decide again when a target fails.

    decide ── refuse ───────────────────────────► RouteRefused, QuotaExceeded, CloudUnreachable
      ▲  └─── edge, cloud, cascade, speculative ► pieces of the answer
      └────── a target failed: the same decision with that fact changed; once something was shown, only as `fallback.mid_stream` says

A failed target is asked again only as often as the policy's retries say, since deciding again knows that it failed, and one budget of
attempts covers all of them. No failure loosens privacy.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from ...router.costs import CostModel, cloud_price, priced
from ...router.decide import decide
from ...router.decision import Decision
from ...router.quota import QuotaView
from ...router.quota.account import Account, Hold, Use
from ...router.request import RouteContext, RouteRequest
from ...shared_protocol.errors import ClientClosed, CloudUnreachable, ContextOverflow, HybridError, TemplateError
from ...shared_protocol.runtime import DeviceState, LinkState
from ..piece import Piece
from .answer_state import AnswerState
from .clouds import Cloud
from .continue_route import continue_on_device
from .conversations import Remembered
from .refusal import Failures, refusal_of
from .routes import run_route
from .target import TargetFailed, blame, outcome_of

MAX_RACES = 16  # how often other requests may take the quota that a decision has seen


class Answer:
    """Drives the state of one request; iterate `pieces` once."""

    def __init__(self, state: AnswerState, remembered: Remembered) -> None:
        self.state = state
        self._remembered = remembered
        self._failures = Failures()
        self._hold: Hold | None = None
        self._context: RouteContext | None = None  # of the last decision

    async def pieces(self) -> AsyncGenerator[Piece, None]:
        """Raises what `refusal_of` makes, or what makes the request unanswerable anywhere."""
        state = self.state
        try:
            state.prompt_ids = await self._render(state.request)
            shown, visible = "", False  # of the answer so far
            broken = False  # what is visible is void, which the next piece has to say
            while True:
                decision = state.decision = await self._decide()
                if state.services.recorder is not None and self._context is not None:
                    state.services.recorder.record(state.request, self._context, decision)
                if decision.route == "refuse" or self._spent:
                    raise refusal_of(state, decision, self._failures)
                state.target = "edge" if decision.route in ("edge", "cascade") or state.cloud is None else state.cloud.name
                try:
                    async with aclosing(run_route(state, decision, self._remembered.redaction.values())) as pieces:
                        async for piece in pieces:
                            if broken:
                                yield Piece(mark="restarted")
                                broken, shown, state.spans = False, "", []
                            shown, visible = shown + piece.text, visible or bool(piece.text or piece.logprobs)
                            state.spans += piece.spans
                            yield piece
                except TargetFailed as failed:
                    if state.services.closed:
                        raise
                    self._note(failed)
                    torn = decision.route == "speculative" and failed.target == "cloud"  # which the application wants to be told of
                    how = state.policy.fallback.mid_stream if state.stream or torn else "restart"
                    if not visible or broken:
                        state.spans = []
                        continue
                    if how == "restart":
                        broken = True
                        continue
                    if how == "error" or failed.target == "edge" or self._spent:
                        raise
                    state.target = "edge"
                    async for piece in continue_on_device(state, shown, failed.error):
                        state.spans += piece.spans
                        yield piece
                state.tried(state.target, "answered")
                return
        except Exception as error:
            if state.services.closed:  # whatever it is, that is why
                raise ClientClosed from error
            if isinstance(error, TargetFailed):
                raise error.error from error
            raise
        finally:
            self._settle()
            self._remembered.end_of_call()

    @property
    def _spent(self) -> bool:
        return self._failures.count >= self.state.policy.fallback.attempts and self.state.kept is None

    async def _render(self, request: RouteRequest) -> list[int] | None:
        """The prompt by the device's model, which may have to be loaded for it. Raises what is wrong with how that was named."""
        device = self.state.services.device
        if device is None or self._failures.edge is not None:
            return None
        try:
            with blame("edge"):
                return await device.prompt_ids(request)
        except TemplateError as error:
            self._failures.edge = error
        except TargetFailed as failed:
            self._note(failed)
        return None

    async def _render_sent(self, decision: Decision) -> bool:
        """The prompt with its placeholders, when the cloud is to get one: the device drafts from nothing else. False: nothing was to do."""
        state, shareable = self.state, decision.shareable
        if shareable is None or not decision.replaced or shareable.value == state.sent:
            return False
        state.sent, state.sent_ids = shareable.value, await self._render(shareable.value)
        return True

    async def _measure(self) -> None:
        try:
            with blame("edge"):
                await self.state.services.measure_device(self.state.policy.speculation)
        except TargetFailed as failed:
            self._note(failed)

    def _note(self, failed: TargetFailed) -> None:
        state, cloud, failures = self.state, self.state.cloud, self._failures
        failures.count += 1
        if failed.target == "edge":
            failures.edge = failed.error
            state.tried("edge", outcome_of(failed.error))
            return
        assert cloud is not None
        state.tried(cloud.name, outcome_of(failed.error))
        if failed.target == "speculation":
            failures.undrafted.add(cloud)
        else:
            failures.clouds.setdefault(cloud, []).append(failed.error)
            state.services.clouds.note(cloud, failed.error)

    async def _decide(self) -> Decision:
        """Decide as if the next target were there; look whether it is only when it would have a part in the answer. So a private prompt,
        a simple one and a refused one open no connection at all."""
        clouds, races = self.state.services.clouds, 0
        while True:
            self._settle()
            quota, rejected = await self._quota()
            cloud = self.state.cloud = clouds.next(self._failures.clouds)
            decision = self._decide_with(clouds.away if cloud is None else cloud.monitor.hoped, quota, rejected)
            if not decision.cloud_tokens:
                return decision
            assert cloud is not None
            await self._measure()
            link = await cloud.fresh(self.state.traffic)
            if not link.reachable:
                self._gone(cloud)
                continue
            decision = self._decide_with(link, quota, rejected)
            while await self._render_sent(decision):  # its tokens are counted now
                decision = self._decide_with(link, quota, rejected)
            if decision.rule == "capability.cloud_context" and self._too_small(cloud, link, decision):
                continue
            if not decision.cloud_tokens or await self._reserve(decision):
                return decision
            races += 1
            if races == MAX_RACES:  # others are always quicker, or the quota's store comes and goes
                return self._decide_with(link, QuotaView(0, 0, level="store"), rejected)

    def _gone(self, cloud: Cloud) -> None:
        """It does not answer a probe. Nothing of the request was sent, so that this uses up no attempt."""
        self.state.tried(cloud.name, CloudUnreachable.code)
        self._failures.clouds.setdefault(cloud, []).append(CloudUnreachable(f"{cloud.client.url} did not answer"))

    def _too_small(self, cloud: Cloud, link: LinkState, decision: Decision) -> bool:
        """Its context is, and another target may have a larger one."""
        asked = decision.prompt_tokens + (self.state.request.max_tokens or 1)
        failed: dict[Cloud, list[HybridError]] = dict(self._failures.clouds)
        failed[cloud] = [ContextOverflow(asked=asked, limit=link.cloud_context or 0)]
        if self.state.services.clouds.next(failed) is None:
            return False
        self._failures.clouds = failed
        return True

    def _decide_with(self, link: LinkState, quota: QuotaView, rejected: QuotaView) -> Decision:
        state, services, cloud = self.state, self.state.services, self.state.cloud
        busy = services.clouds.busy(self._failures.clouds) if cloud is None else None
        if busy is not None:
            link, quota = replace(link, reachable=True), QuotaView(0, 0, level="cloud", told_s=busy.retry_after_s)
        device = self._device()
        able = cloud is not None and cloud.can_speculate and cloud not in self._failures.undrafted
        able = able and state.request.sampling.logprobs is None and device.edge_available and services.can_draft
        self._context = context = RouteContext(
            policy=state.policy,
            device=device,
            link=link,
            quota=quota,
            rejected=rejected,
            count_tokens=None if state.prompt_ids is None else lambda asked: len(state.ids_of(asked)),
            privacy_floor=self._remembered.floor,
            redaction=self._remembered.redaction,
            moment=state.moment,
            costs=priced(CostModel(), state.policy.price, state.asked_model),
            speculation=services.facts(cloud, link) if able and cloud is not None else None,
            edge_model=services.device.name if services.device is not None and services.device.loaded else None,
            cloud_model=state.asked_model,
        )
        return decide(state.request, context)

    def _device(self) -> DeviceState:
        """The device's state, and whether its model can answer this request."""
        services = self.state.services
        state = services.device_state.read()
        if services.device is None or self._failures.edge is not None:
            return replace(state, edge_available=False)
        return replace(state, edge_context=services.device.context)

    @property
    def _account(self) -> Account:
        return Account(self.state.request.user, self.state.request.tenant, self.state.asked_model)

    async def _quota(self) -> tuple[QuotaView, QuotaView]:
        """What is left, and how many more drafts may be rejected."""
        meter = self.state.services.meter
        drafting = self.state.policy.speculation.mode != "off"
        return await meter.view(self._account), await meter.rejected(self._account) if drafting else QuotaView()

    async def _reserve(self, decision: Decision) -> bool:
        """False when other requests were quicker: then the decision no longer holds."""
        self._hold = await self.state.services.meter.reserve(self._account, Use(decision.cloud_tokens, decision.cost))
        return self._hold is not None

    def _settle(self) -> None:
        """Charge what the cloud has computed so far, give back the rest."""
        state, hold = self.state, self._hold
        if hold is not None:
            prices = priced(CostModel(), state.policy.price, hold.account.model)
            money = cloud_price(prices, state.prompt_used, state.output_used)
            state.services.meter.settle(hold, Use(state.prompt_used + state.output_used, money, state.rejected))
            self._hold = None
        state.settled()
