"""Which requests get how many tokens in the next step, and whose blocks pay for it.

There are no prefill and decode phases: a request has ids that are known and ids that are computed, and a step moves the second
towards the first. A step's tokens are handed out in this order until its budget is spent:

    1 decoding   running requests that want their next token: one position each, and the drafts to verify
    2 chunks     running requests whose prompt is not computed yet, each at most `long_prefill_token_threshold`
    3 admission  waiting requests, oldest first, when all blocks for their known ids are there; never in a step that took blocks away

So a long prompt never stalls those who read already. Blocks run out only in 1; what idle remote sessions hold is taken first, then
the newest running request is sent back to wait. It keeps its output and is computed again.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...shared_protocol.errors import EngineFailed
from .block_pool import BlockPool
from .prefix_cache import PrefixCache
from .request import Request


@dataclass(frozen=True, slots=True)
class Limits:
    """Who reads an answer waits for whole steps. On a CPU a step of 512 tokens takes a second and saves a few per cent over four of 128."""

    max_num_batched_tokens: int = 128  # tokens of one step
    max_num_seqs: int = 64  # requests that hold a place, parked ones included
    long_prefill_token_threshold: int = 64  # tokens of one prompt in one step: a long one leaves room for others

    def __post_init__(self) -> None:
        assert min(self.max_num_batched_tokens, self.max_num_seqs, self.long_prefill_token_threshold) >= 1, self


@dataclass(frozen=True, slots=True)
class Share:
    """What one request gets: positions `start` .. `start + count` - 1, of which the last `num_drafts` are drafts.

    The last `num_rows` of them draw a token each: none in a chunk that is not the last, else 1 + num_drafts.
    """

    request: Request
    start: int
    count: int
    num_drafts: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class StepPlan:
    shares: tuple[Share, ...]
    parked: tuple[Request, ...]  # remote sessions that were admitted with nothing to compute
    preempted: tuple[Request, ...]


@dataclass(slots=True)
class _Step:
    budget: int
    shares: list[Share] = field(default_factory=list)
    parked: list[Request] = field(default_factory=list)
    preempted: list[Request] = field(default_factory=list)


class Scheduler:
    """First come, first served. Takes and returns data; the engine computes between `schedule` and `commit`."""

    def __init__(self, pool: BlockPool, cache: PrefixCache, block_size: int, limits: Limits) -> None:
        self.pool = pool
        self.cache = cache
        self.limits = limits
        self.waiting: list[Request] = []  # by arrival; a pre-empted request is older than all that never ran
        self.running: list[Request] = []  # by admission
        self.parked: dict[str, Request] = {}  # longest idle first
        self.dormant: dict[str, Request] = {}
        self.num_preemptions = 0
        self._block_size = block_size
        self._arrivals = 0

    @property
    def has_work(self) -> bool:
        return bool(self.running or self.waiting)

    def add(self, request: Request) -> None:
        """Queue a new request. The caller has checked that it can fit when it is alone."""
        self._arrivals += 1
        request.arrival = self._arrivals
        self._wait(request)

    def resume(self, request: Request) -> None:
        """A parked session has a draft to verify."""
        if request.state == "parked":
            del self.parked[request.request_id]
            request.state = "running"
            self.running.append(request)
        else:
            assert request.state == "dormant", request.state
            del self.dormant[request.request_id]
            self._wait(request)

    def park(self, request: Request) -> None:
        """A running session waits for its device now."""
        self.running.remove(request)
        request.state = "parked"
        self.parked[request.request_id] = request

    def finish(self, request: Request) -> None:
        """Forget a request in whatever state it is."""
        if request.state == "running":
            self.running.remove(request)
        elif request.state == "waiting":
            self.waiting.remove(request)
        else:
            self.parked.pop(request.request_id, None)
            self.dormant.pop(request.request_id, None)
        self._release(request, 0)
        request.state = "finished"

    def schedule(self) -> StepPlan:
        """Plan one step. Raises EngineFailed, naming the oldest request, if there is work and none of it could get on."""
        step = _Step(self.limits.max_num_batched_tokens)
        self._decode(step)
        self._continue_chunks(step)
        if not step.preempted:
            self._admit(step)
        if self.has_work and not step.shares and not step.parked:
            stuck = min(self.running + self.waiting, key=lambda request: request.arrival)
            raise EngineFailed(f"request {stuck.request_id} is {stuck.state} and cannot get on: {stuck.progress}, {self.pool.counts()}")
        return StepPlan(tuple(step.shares), tuple(step.parked), tuple(step.preempted))

    def commit(self, share: Share, new_ids: Sequence[int] = ()) -> None:
        """A share is computed and `new_ids` follow the known ids: accepted drafts, and the engine's own draw.

        positions computed      start ─────────────── known │ accepted │ rejected
        known ids afterwards    ··························· │ accepted  draw
        in the KV cache         ─────────────────────────────────────┘ so all but the newest; rejected positions are written again
        """
        request = share.request
        published = request.num_computed // self._block_size
        request.token_ids.extend(new_ids)
        request.advance(min(share.start + share.count, len(request.token_ids) - bool(share.num_rows)))
        request.chain.extend(request.token_ids)
        self.cache.publish(request.chain, request.token_ids, request.block_ids, published, request.num_computed // self._block_size)
        if share.num_drafts:
            self._release(request, self._blocks_for(request.num_tokens))

    def _decode(self, step: _Step) -> None:
        for request in tuple(self.running):
            if step.budget == 0:
                return
            if request.state == "running" and request.goal - request.num_computed == 1 and self._make_room(request, step):
                self._share(request, 1, step)

    def _continue_chunks(self, step: _Step) -> None:
        for request in self.running:
            if step.budget and request.goal - request.num_computed > 1:
                self._share(request, self._chunk(request, step), step)

    def _admit(self, step: _Step) -> None:
        index = 0
        while index < len(self.waiting) and step.budget:
            request = self.waiting[index]
            request.chain.extend(request.token_ids)
            hit = self.cache.match(request.chain, request.token_ids)
            if self._is_being_computed(request, len(hit)):
                index += 1
                continue
            if not self._reserve(request, hit):
                return
            del self.waiting[index]
            request.state = "running"
            self.running.append(request)
            if request.num_computed == request.goal:
                step.parked.append(request)
                self.park(request)
            else:
                self._share(request, self._chunk(request, step), step)

    def _chunk(self, request: Request, step: _Step) -> int:
        return min(request.goal - request.num_computed, self.limits.long_prefill_token_threshold, step.budget)

    def _share(self, request: Request, count: int, step: _Step) -> None:
        """Give `count` positions; with the last known id among them, as many drafts as fit without taking anything from anyone."""
        start, drafts, rows = request.num_computed, 0, 0
        if start + count == request.num_tokens:
            held = len(request.block_ids) + self.pool.num_allocatable
            drafts = min(len(request.draft_ids), step.budget - count, held * self._block_size - request.num_tokens)
            rows = 1 + drafts
            missing = self._blocks_for(start + count + drafts) - len(request.block_ids)
            request.block_ids.extend(self.pool.allocate(max(missing, 0)))
        step.budget -= count + drafts
        step.shares.append(Share(request, start, count + drafts, drafts, rows))

    def _make_room(self, request: Request, step: _Step) -> bool:
        """See to it that the newest id of `request` has a slot. False when the request itself had to give way."""
        while self._blocks_for(request.num_tokens) > len(request.block_ids) + self.pool.num_allocatable:
            victim = next(iter(self.parked.values())) if self.parked else self.running[-1]
            self._preempt(victim, step)
            if victim is request:
                return False
        return True

    def _reserve(self, request: Request, hit: Sequence[int]) -> bool:
        """Give a waiting request a place and blocks for all its known ids, at the cost of parked sessions at most."""
        missing = self._blocks_for(request.num_tokens) - len(hit)

        def lacking() -> int:
            return missing - self.pool.num_allocatable + sum(self.pool.references(block) == 0 for block in hit)

        if len(self.running) >= self.limits.max_num_seqs or lacking() > sum(len(parked.block_ids) for parked in self.parked.values()):
            return False
        while len(self.running) + len(self.parked) >= self.limits.max_num_seqs or lacking() > 0:
            if not self.parked:
                return False
            self._preempt(next(iter(self.parked.values())), None)
        self.pool.touch(hit)  # before anything is allocated, or the hit could be evicted by its own request
        request.block_ids.extend(hit)
        request.block_ids.extend(self.pool.allocate(missing))
        request.restart(len(hit) * self._block_size)
        if request.prompt_cached is None:
            request.prompt_cached = request.num_computed
        self.cache.num_queried += request.num_tokens
        self.cache.num_hit += request.num_computed
        return True

    def _is_being_computed(self, request: Request, index: int) -> bool:
        """Whether the first block that the cache lacks is in a running request's prompt and will be in the cache soon."""
        if index >= (request.num_tokens - 1) // self._block_size:
            return False
        key, end = request.chain.keys[index], (index + 1) * self._block_size
        return any(r.num_computed < end <= r.goal and r.chain.keys[index] == key for r in self.running)

    def _preempt(self, victim: Request, step: _Step | None) -> None:
        self.num_preemptions += 1
        self._release(victim, 0)
        victim.restart(0)
        if victim.state == "parked":
            del self.parked[victim.request_id]
            victim.state = "dormant"
            self.dormant[victim.request_id] = victim
        else:
            self.running.remove(victim)
            self._wait(victim)
        if step is not None:
            step.preempted.append(victim)

    def _wait(self, request: Request) -> None:
        request.state = "waiting"
        insort(self.waiting, request, key=lambda r: r.arrival)

    def _release(self, request: Request, keep: int) -> None:
        self.pool.release(request.block_ids[keep:])
        del request.block_ids[keep:]

    def _blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self._block_size)
