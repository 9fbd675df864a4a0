"""Between those who ask and an engine: texts to ids and back, choices, stop strings, aborts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial

from msgspec.structs import replace

from ...shared_protocol.errors import InvalidRequest
from ...shared_protocol.model import Model
from ...shared_protocol.noise import child_seed, fresh_seed
from ...shared_protocol.sampling import SamplingParams
from .client import EngineClient
from .completion import Chunk as Chunk
from .completion import Completion
from .give_back import give_back_memory
from .merge import merge
from .messages import Add
from .request import resolve_max_tokens

LONG_CHARACTERS = 64 * 1024


class Frontend:
    """One model behind one engine, for many askers on one event loop."""

    def __init__(self, model: Model, client: EngineClient) -> None:
        self.model = model
        self.client = client
        self._for_long_texts = ThreadPoolExecutor(1, "hybrid-long-text")

    async def tokenize(self, text: str, limit: int | None = None) -> list[int]:
        """Token ids of `text`, off the event loop. Raises ContextOverflow early for text that must have more than `limit` tokens."""
        return await self._off_loop(len(text), partial(self.model.tokenizer.encode, text, limit=limit))

    async def render(self, messages: Sequence[Mapping[str, object]], limit: int | None = None) -> list[int]:
        """Prompt ids of a chat, off the event loop. Raises TemplateError, and ContextOverflow as `tokenize` does."""
        characters = sum(len(str(message.get("content"))) for message in messages)
        return await self._off_loop(characters, partial(self.model.render_chat, messages, limit=limit))

    async def _off_loop(self, characters: int, work: Callable[[], list[int]]) -> list[int]:
        """Long texts take turns on one thread: they need some 400 bytes per token meanwhile, and short ones should not wait for them."""
        loop = asyncio.get_running_loop()
        if characters < LONG_CHARACTERS:
            return await loop.run_in_executor(None, work)
        return await loop.run_in_executor(self._for_long_texts, _and_give_back, work)

    def generate(
        self, prompt_ids: Sequence[int], params: SamplingParams, request_id: str, *, cache_salt: str = ""
    ) -> AsyncGenerator[Chunk]:
        """Yield the chunks of all `params.n` choices as they come. Closing the generator aborts those that still run.

        Raises InvalidRequest and ContextOverflow at once, Unavailable with the first chunk. A choice that an engine ended by force
        has finish_reason "error" or "abort".
        """
        check_prompt(prompt_ids, self.model.tokenizer.vocab_size)
        resolve_max_tokens(len(prompt_ids), params.max_tokens, self.client.max_model_len)
        choices = children(Add(request_id, tuple(prompt_ids), params, 0, cache_salt))
        return merge([self._choice(add, index) for index, add in enumerate(choices)])

    async def _choice(self, add: Add, index: int) -> AsyncGenerator[Chunk]:
        completion = Completion(self.model.tokenizer, add.params, index)
        async with aclosing(self.client.add(add)) as outputs:
            async for output in outputs:
                chunk = completion.push(output)
                if chunk.token_ids or chunk.finish_reason is not None:
                    yield chunk
                if completion.finished:
                    return


def check_prompt(prompt_ids: Sequence[int], vocab_size: int) -> None:
    """Raise InvalidRequest for an empty prompt and for ids that the vocabulary does not have."""
    if not prompt_ids:
        raise InvalidRequest("the prompt is empty", param="prompt", hint="at least one token is needed")
    if min(prompt_ids) < 0 or max(prompt_ids) >= vocab_size:
        wrong = next(i for i in prompt_ids if not 0 <= i < vocab_size)
        raise InvalidRequest(f"token ids must be from 0 to {vocab_size - 1}, found {wrong}", param="prompt")


def children(add: Add) -> list[Add]:
    """One request per choice: seeds of their own, one prompt; the engine computes the prompt once and shares its blocks."""
    n, seed = add.params.n, fresh_seed() if add.params.seed is None else add.params.seed
    if n == 1:
        return [replace(add, seed=seed)]
    return [replace(add, request_id=f"{add.request_id}-{i}", seed=child_seed(seed, i)) for i in range(n)]


def _and_give_back(work: Callable[[], list[int]]) -> list[int]:
    try:
        return work()
    finally:
        give_back_memory()
