"""One text, computed in every way that the system knows: alone, batched, from a warm cache, in chunks, drafted by a device.

Every way gives the token ids of all prompts, and all ways must give the same (docs/same_text.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count

from msgspec.structs import replace

from ..cloud.engine.llm import LLM
from ..cloud.engine.messages import Add, Draft, StepOutput, Verdict
from ..edge.corruptor import Corruptor
from ..edge.drafter import Drafter
from ..edge.native import NativeRuntime
from ..shared_protocol.errors import EngineFailed
from ..shared_protocol.model import Model
from ..shared_protocol.runtime import EdgeRuntime
from ..shared_protocol.sampling import SamplingParams
from ..shared_protocol.verify import prefix_hash

Prompts = Sequence[Sequence[int]]  # token ids
Ids = tuple[tuple[int, ...], ...]  # the answer of each prompt
Way = Callable[[Prompts, SamplingParams], Ids]

CHUNKS = (1, 7, 64)
DRAFT_LENGTHS = tuple(range(1, 9))
CORRUPTIONS = (0.0, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a way left the plain text."""

    prompt: int
    token: int


def first_difference(plain: Ids, other: Ids) -> Difference | None:
    for number, (expected, found) in enumerate(zip(plain, other, strict=True)):
        if expected != found:
            shared = next((i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b), min(len(expected), len(found)))
            return Difference(number, shared)
    return None


def every_way(model: Model, device: Model | None = None) -> Iterator[tuple[str, Way]]:
    """Name each way and give it; a way is to be used before the next is asked for, since engines are opened one after the other.
    `device` is the model that drafts, of the same vocabulary; None: the same model.

    "alone" comes first, on one thread: the text that all others are held against.
    """
    with closing(LLM(model, threads=1)) as llm, closing(NativeRuntime(device or model, threads=1)) as runtime:
        yield "alone", partial(alone, llm)
        yield "batched", partial(batched, llm)
        yield "warm prefix", partial(warm, llm)
        for k in DRAFT_LENGTHS:
            for corruption in CORRUPTIONS:
                yield f"drafted k={k} corruption={corruption:g}", partial(drafted, llm, runtime, k, corruption)
    with closing(LLM(model, threads=2)) as llm:
        yield "alone, 2 threads", partial(alone, llm)
        yield "batched, 2 threads", partial(batched, llm)
    for chunk in CHUNKS:
        with closing(LLM(model, threads=1, long_prefill_token_threshold=chunk)) as llm:
            yield f"chunks of {chunk}", partial(batched, llm)


def alone(llm: LLM, prompts: Prompts, params: SamplingParams) -> Ids:
    """One prompt after the other, nothing cached."""
    answers: list[tuple[int, ...]] = []
    for prompt in prompts:
        llm.engine.forget_prefixes()
        answers.append(llm.generate([prompt], params)[0].token_ids)
    return tuple(answers)


def batched(llm: LLM, prompts: Prompts, params: SamplingParams) -> Ids:
    """All prompts at once, nothing cached."""
    llm.engine.forget_prefixes()
    return tuple(generation.token_ids for generation in llm.generate(list(prompts), params))


def warm(llm: LLM, prompts: Prompts, params: SamplingParams) -> Ids:
    """One after the other, each prompt's blocks in the cache already. Raises EngineFailed when nothing came from the cache."""
    llm.engine.forget_prefixes()
    llm.generate(list(prompts), replace(params, max_tokens=1))
    generations = [llm.generate([prompt], params)[0] for prompt in prompts]
    if not any(generation.num_cached for generation in generations):
        raise EngineFailed("the warm run found nothing in the prefix cache")
    return tuple(generation.token_ids for generation in generations)


def drafted(llm: LLM, runtime: EdgeRuntime, k: int, corruption: float, prompts: Prompts, params: SamplingParams) -> Ids:
    """A device drafts `k` ids a round, each replaced on purpose with probability `corruption`; the engine verifies."""
    return tuple(
        _drafted(llm, runtime, k, Corruptor(corruption, i, llm.model.tokenizer.vocab_size), p, params) for i, p in enumerate(prompts)
    )


def _drafted(
    llm: LLM, runtime: EdgeRuntime, k: int, corruptor: Corruptor, prompt: Sequence[int], params: SamplingParams
) -> tuple[int, ...]:
    assert params.seed is not None, "exactness is a claim about seeds"
    drafter = Drafter(runtime, prompt, params, params.seed, vocab_size=llm.model.tokenizer.vocab_size, mutate=corruptor)
    drafter.prefill()
    llm.engine.add(Add("device", tuple(prompt), params, params.seed, remote=True))
    output = _next_output(llm)
    ids: list[int] = []
    for number in count(1):
        drafts = drafter.draft(k)
        llm.engine.draft(Draft("device", number, len(drafter.committed), prefix_hash(drafter.committed), drafts))
        output = _next_output(llm)
        assert isinstance(output.answer, Verdict), output.answer
        ids += output.new_ids
        drafter.settle(output.answer.n_accepted, output.answer.token)
        if output.finish_reason is not None:
            break
    return tuple(ids)


def _next_output(llm: LLM) -> StepOutput:
    while llm.engine.has_work:
        for output in llm.engine.step():
            return output
    raise EngineFailed("the engine has nothing to do, and the device waits")
