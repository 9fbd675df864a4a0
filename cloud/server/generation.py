"""One answer in the making, the same for streamed and whole: prompts in, chunks of all choices out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

import msgspec

from ...shared_protocol.errors import EngineFailed, ModelNotFound, Unavailable
from ...shared_protocol.openai import PromptTokensDetails, Usage
from ...shared_protocol.sampling import SamplingParams
from ..engine.frontend import Chunk, Frontend
from ..engine.merge import merge
from .admission import Admission
from .key_quota import KeyQuotas
from .metrics import Metrics
from .request_info import RequestInfo
from .settings import ServerSettings


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked. Choice `i * params.n + j` is child j of prompt i."""

    id: str
    created: int  # seconds since 1970
    model: str
    prompts: tuple[tuple[int, ...], ...]  # token ids
    params: SamplingParams  # with a seed
    cache_salt: str
    arrival: float  # of the request, on the service's clock

    @property
    def choices(self) -> int:
        return len(self.prompts) * self.params.n


@dataclass(slots=True)
class Tally:
    """Tokens of a job so far. A prompt counts once, whatever n is."""

    prompt: int
    completion: int = 0
    cached: dict[int, int] = field(default_factory=dict)  # prompt -> tokens from the prefix cache

    @classmethod
    def of(cls, job: Job) -> Tally:
        return cls(prompt=sum(map(len, job.prompts)))

    def add(self, chunk: Chunk, n: int) -> bool:
        """Count a chunk's tokens; whether they are the first of its prompt. Choices that find what another has computed for them
        do not make the prompt cheaper."""
        prompt = chunk.index // n
        first = prompt not in self.cached
        self.completion += len(chunk.token_ids)
        self.cached[prompt] = min(chunk.num_cached, self.cached.get(prompt, chunk.num_cached))
        return first

    def computed(self, job: Job) -> int:
        """What a key is charged for: prompts that were read, and all that was written."""
        return sum(len(job.prompts[prompt]) for prompt in self.cached) + self.completion

    def usage(self) -> Usage:
        details = PromptTokensDetails(cached_tokens=sum(self.cached.values()))
        return Usage(self.prompt, self.completion, self.prompt + self.completion, details)


class Service:
    """What the routes share: the front-end, the admission, the counters."""

    def __init__(
        self, frontend: Frontend, settings: ServerSettings, metrics: Metrics, clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        self.frontend = frontend
        self.settings = settings
        self.metrics = metrics
        self.clock = clock
        self.wall = wall
        self.key_quotas = KeyQuotas(settings.tokens_per_minute, clock)
        self.admission = Admission(settings.max_requests, settings.retry_after_s)
        self.model_id = settings.model_id or frontend.model.card.name
        self.started = int(wall())

    @property
    def max_model_len(self) -> int:
        """Tokens of one request, prompt and answer."""
        return self.frontend.client.max_model_len

    def check_model(self, asked: str | None) -> None:
        """Raise ModelNotFound unless `asked` is the model served here or not named at all."""
        if asked is not None and asked != self.model_id:
            raise ModelNotFound(f"the model {asked[:80]!r} is not served here", param="model", hint=f"this server has {self.model_id!r}")

    async def run(self, job: Job, tally: Tally, info: RequestInfo) -> AsyncGenerator[Chunk]:
        """Yield the chunks of all choices as they come; `tally` counts along.

        Raises Unavailable when there is no place, QuotaExceeded and RequestExceedsQuota for a key's tokens, ContextOverflow, EngineFailed;
        leaving early aborts whatever still runs.
        """
        asked = None if job.params.max_tokens is None else job.params.max_tokens * job.choices
        info.limits = partial(self.key_quotas.headers, info.caller.key_id)
        quota = self.key_quotas.hold(info.caller.key_id, tally.prompt, asked, lambda: tally.computed(job))
        with self.admission.enter(), quota:
            info.prompt_tokens = tally.prompt
            meter = self.metrics.meter(job.arrival, job.choices)
            async with aclosing(merge([self._one(job, index) for index in range(len(job.prompts))])) as chunks:
                try:
                    async for chunk in chunks:
                        if chunk.token_ids and tally.add(chunk, job.params.n):
                            self.metrics.count_prompt(len(job.prompts[chunk.index // job.params.n]))
                        info.completion_tokens = tally.completion
                        meter.tokens(chunk.index, len(chunk.token_ids), self.clock())
                        if chunk.finish_reason is not None:
                            meter.finish(chunk.finish_reason, self.clock())
                        self._raise_forced_end(chunk)
                        yield chunk
                except Unavailable:
                    if not tally.cached:
                        meter.refuse()
                    raise
                finally:
                    meter.leave()

    def _raise_forced_end(self, chunk: Chunk) -> None:
        if chunk.finish_reason == "error":
            raise EngineFailed(chunk.error or "the engine failed on this request")
        if chunk.finish_reason == "abort":
            raise Unavailable("the server stopped before the answer was complete", retry_after_s=self.settings.retry_after_s)

    async def _one(self, job: Job, prompt: int) -> AsyncGenerator[Chunk]:
        request_id = job.id if len(job.prompts) == 1 else f"{job.id}-p{prompt}"
        answer = self.frontend.generate(job.prompts[prompt], job.params, request_id, cache_salt=job.cache_salt)
        async with aclosing(answer) as chunks:
            async for chunk in chunks:
                yield msgspec.structs.replace(chunk, index=prompt * job.params.n + chunk.index) if prompt else chunk


async def collect(chunks: AsyncIterator[Chunk], choices: int) -> list[list[Chunk]]:
    """All chunks, by choice."""
    found: list[list[Chunk]] = [[] for _ in range(choices)]
    async for chunk in chunks:
        found[chunk.index].append(chunk)
    return found
