"""The engine: requests in, one step after another, outputs out. Belongs to one thread; transports stand in front of it.

       ┌──────────────────────────────── step ────────────────────────────────┐
add ──►│ scheduler ──► runner ──► executor ──► draws ──► verify, cut ──► commit │──► StepOutput ...
       └──────────────────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Collection
from contextlib import suppress

from msgspec.structs import replace

from ...npu_backends.step import StepExecutor
from ...shared_protocol.errors import EngineFailed, HybridError, InvalidRequest, Unavailable
from ...shared_protocol.verify import Accepted, cut, verify
from .block_pool import BlockPool
from .messages import Add, Draft, EngineStats, Refused, Stale, StepOutput, Verdict
from .prefix_cache import Chain, Extra, PrefixCache
from .request import Request, Round, resolve_max_tokens
from .runner import Drawn, Runner
from .scheduler import Limits, Scheduler, Share
from .session import Pending, RemoteSession, Verify

log = logging.getLogger(__name__)


class Engine:
    """Continuous batching of many requests over one executor.

    `cache_scope` names all that a block's content depends on besides tokens (`bytes(Scope(...))`); `vocab_size` masks padded logits.
    """

    def __init__(
        self,
        executor: StepExecutor,
        *,
        eos_ids: Collection[int],
        max_model_len: int,
        limits: Limits | None = None,
        cache_scope: bytes = b"",
        vocab_size: int | None = None,
    ) -> None:
        limits = limits or Limits()
        pool = BlockPool(executor.num_blocks)
        self.executor = executor
        self.vocab_size = vocab_size or executor.vocab_size
        self.max_model_len = min(max_model_len, (executor.num_blocks - 1) * executor.block_size)
        self.healthy = True
        self._closed = False
        self._eos_ids = frozenset(eos_ids)
        self._cache_scope = cache_scope
        self._scheduler = Scheduler(pool, PrefixCache(pool, executor.block_size), executor.block_size, limits)
        self._runner = Runner(executor, limits, self.vocab_size)
        self._requests: dict[str, Request] = {}
        self._outputs: list[StepOutput] = []  # answers that needed no computing
        self._steps = 0

    @property
    def has_work(self) -> bool:
        """Whether `step` has something to do. False while all that is left are parked sessions, and once the engine has failed."""
        return bool(self._outputs) or (self.healthy and self._scheduler.has_work)

    def add(self, message: Add) -> None:
        """Queue a request. Raises InvalidRequest, ContextOverflow when it can never fit, Unavailable when the engine has failed."""
        if self._closed or not self.healthy:
            raise Unavailable("the engine is closed" if self._closed else "the engine has failed and takes no more requests")
        if message.request_id in self._requests:
            raise InvalidRequest(f"a request with the id {message.request_id!r} is running", param="request_id")
        if not message.prompt_ids or not self._known(message.prompt_ids):
            raise InvalidRequest(f"a prompt has at least one id, and all are below {self.vocab_size}", param="prompt")
        params = message.params
        request = Request(
            message.request_id,
            array("i", message.prompt_ids),
            len(message.prompt_ids),
            resolve_max_tokens(len(message.prompt_ids), params.max_tokens, self.max_model_len),
            Chain(self._cache_scope, self.executor.block_size, (Extra("salt", message.cache_salt),) if message.cache_salt else ()),
            params,
            message.seed,
            frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else self._eos_ids),
            RemoteSession(message.prompt_ids) if message.remote else None,
        )
        self._requests[request.request_id] = request
        self._scheduler.add(request)

    def draft(self, message: Draft) -> None:
        """Take a device's window; the answer comes with a later `step`. Ignored when the request is gone or not remote."""
        request = self._requests.get(message.request_id)
        if request is None or request.session is None:
            return
        if not self._known(message.ids):
            answer: Verdict | Stale | Refused | Verify | Pending = Refused(
                message.round, "token_id", f"draft ids must be below {self.vocab_size}"
            )
        else:
            answer = request.session.offer(message)
        if isinstance(answer, Verify):
            # of what could be accepted, the last token is always drawn here
            request.round = Round(answer.ids[: request.max_tokens - request.num_output - 1])
            if request.state in ("parked", "dormant"):
                self._scheduler.resume(request)
        elif not isinstance(answer, Pending):
            self._outputs.append(StepOutput(request.request_id, answer=answer, parked=request.round is None))

    def abort(self, request_id: str) -> None:
        """End a request in whatever state it is, without an output. Unknown and finished ids are ignored."""
        request = self._requests.pop(request_id, None)
        if request is not None:
            self._outputs = [output for output in self._outputs if output.request_id != request_id]
            self._scheduler.finish(request)

    def step(self) -> list[StepOutput]:
        """Advance what can be advanced. When something breaks, every request ends with an error and the engine is unhealthy."""
        outputs, self._outputs = self._outputs, []
        if self.healthy and self._scheduler.has_work:
            try:
                self._step(outputs)
            except Exception as error:
                log.exception("the engine failed in step %d", self._steps)
                outputs += self._fail(str(error) if isinstance(error, HybridError) else f"the engine failed: {type(error).__name__}")
            self._steps += 1
        return outputs

    def stats(self) -> EngineStats:
        scheduler, counts = self._scheduler, self._scheduler.pool.counts()
        return EngineStats(
            running=len(scheduler.running),
            waiting=len(scheduler.waiting),
            parked=len(scheduler.parked) + len(scheduler.dormant),
            total=counts.total,
            free=counts.free,
            cached=counts.cached,
            used=counts.used,
            num_preemptions=scheduler.num_preemptions,
            prefix_queries=scheduler.cache.num_queried,
            prefix_hits=scheduler.cache.num_hit,
            steps=self._steps,
            healthy=self.healthy,
        )

    def check_idle(self) -> None:
        """When no request is left: raise EngineFailed, and be unhealthy, unless every block is free or cached."""
        stats = self.stats()
        if self._requests:
            return
        if stats.running or stats.waiting or stats.parked or stats.used or stats.free + stats.cached != stats.total:
            self.healthy = False
            raise EngineFailed(f"no request is left, but the books say {stats}")

    def forget_prefixes(self) -> None:
        """Forget all cached blocks that no request holds."""
        self._scheduler.pool.forget_unused()

    def close(self) -> None:
        """Abort what is left and free the executor."""
        for request_id in list(self._requests):
            self.abort(request_id)
        self._closed = True
        self.executor.close()

    def _step(self, outputs: list[StepOutput]) -> None:
        """One step; what it gave before something broke is in `outputs`."""
        plan = self._scheduler.schedule()
        outputs += [self._parked(request) for request in plan.parked]
        if plan.shares:
            for share, drawn in zip(plan.shares, self._runner.run(plan.shares), strict=True):
                output = self._settle(share, drawn)
                if output is not None:
                    outputs.append(output)

    def _settle(self, share: Share, drawn: Drawn) -> StepOutput | None:
        """Commit what a share gave. None when there is nothing to say yet."""
        request = share.request
        if drawn.error is not None:
            self._end(request)
            return StepOutput(request.request_id, finish_reason="error", error=drawn.error)
        if not share.num_rows:
            self._scheduler.commit(share)
            if request.session is None or request.num_computed < request.goal:
                return None
            self._scheduler.park(request)
            return self._parked(request)
        drafts = request.draft_ids[: share.num_drafts]
        accepted = cut(verify(drafts, drawn.tokens), drafts, end_ids=request.end_ids, room=request.max_tokens - request.num_output)
        new_ids = drafts[: accepted.n_accepted] if accepted.token is None else (*drafts[: accepted.n_accepted], accepted.token)
        self._scheduler.commit(share, new_ids)
        output = StepOutput(
            request.request_id,
            new_ids,
            () if request.params.logprobs is None else self._runner.logprobs(drawn, new_ids, request.params.logprobs),
            accepted.finish_reason,
            accepted.stop_token_id,
            request.prompt_cached or 0,
        )
        if request.session is not None:
            return self._settle_round(request, share, accepted, output)
        if accepted.finish_reason is not None:
            self._end(request)
        return output

    def _settle_round(self, request: Request, share: Share, accepted: Accepted, output: StepOutput) -> StepOutput | None:
        """Answer a device's round; or go on with the rest of its window when all so far stands and the draw is the next draft."""
        round, session = request.round, request.session
        assert round is not None and session is not None
        new_ids, logprobs = round.new_ids + output.new_ids, round.logprobs + output.logprobs
        rest, ends = round.draft_ids[share.num_drafts :], accepted.finish_reason is not None
        if rest and not ends and accepted.n_accepted == share.num_drafts and accepted.token == rest[0]:
            request.round = Round(rest[1:], round.num_accepted + share.num_drafts + 1, new_ids, logprobs)
            return None
        request.round = None
        if ends:
            self._end(request)
        else:
            self._scheduler.park(request)
        verdict = session.settle(round.num_accepted + accepted.n_accepted, accepted.token)
        return replace(output, new_ids=new_ids, logprobs=logprobs, answer=verdict, parked=not ends)

    def _end(self, request: Request) -> None:
        del self._requests[request.request_id]
        self._scheduler.finish(request)

    def _fail(self, error: str) -> list[StepOutput]:
        self.healthy = False
        ended = [StepOutput(request_id, finish_reason="error", error=error) for request_id in self._requests]
        for request in self._requests.values():
            with suppress(Exception):  # its books may be what broke
                self._scheduler.finish(request)
        self._requests.clear()
        return ended

    def _parked(self, request: Request) -> StepOutput:
        return StepOutput(request.request_id, num_cached=request.prompt_cached or 0, parked=True)

    def _known(self, ids: Collection[int]) -> bool:
        return not ids or (min(ids) >= 0 and max(ids) < self.vocab_size)
