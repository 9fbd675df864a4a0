"""A model in this process: prompts in, texts out, all of them batched, without a thread or an event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from ...quant.at_load import quantised
from ...shared_protocol.errors import EngineFailed, InvalidRequest
from ...shared_protocol.model import Model, load_model
from ...shared_protocol.openai import TokenLogprob
from ...shared_protocol.sampling import SamplingParams
from .completion import Chunk, Completion
from .frontend import check_prompt, children
from .interrupts import interrupts_held
from .messages import Add, FinishReason
from .open_engine import EngineOptions, open_engine
from .request import resolve_max_tokens

Prompt = str | Sequence[int]
Messages = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Generation:
    """One choice for one prompt. The same prompt, parameters and `seed` give the same tokens again."""

    text: str
    token_ids: tuple[int, ...]  # end tokens included
    finish_reason: FinishReason
    logprobs: tuple[TokenLogprob, ...]  # when asked for
    num_prompt: int
    num_cached: int  # of the prompt's tokens, from the prefix cache
    seed: int  # of the request; choice i > 0 drew with a child of it
    index: int = 0  # choice, 0 .. n - 1
    stop_reason: str | int | None = None
    error: str | None = None  # with finish_reason "error"


@dataclass(slots=True)
class _Choice:
    completion: Completion
    num_prompt: int
    seed: int
    chunks: list[Chunk]


class LLM:
    """`LLM("smollm2-135m").generate(["Once upon a time"], SamplingParams(temperature=0, max_tokens=32))`

    `model` is a name in the store, a path, or a loaded Model; `options` are those of `open_engine`. Calls of several threads take turns.
    An interrupt from the keyboard ends a call after the step that it meets, and the next call finds everything in order.
    """

    def __init__(self, model: str | Path | Model, **options: Unpack[EngineOptions]) -> None:
        model = model if isinstance(model, Model) else load_model(model)
        self.model = quantised(model, options.get("quantise"))
        options["quantise"] = "none"  # it is done
        self.engine = open_engine(self.model, **options)
        self._names = count()
        self._turn = threading.Lock()

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        cache_salt: str = "",
    ) -> list[Generation]:
        """Answer all prompts (texts, or token ids); one parameter set for all, or one each. In the order of the prompts, then of choices.

        Raises InvalidRequest and ContextOverflow before anything is computed, EngineFailed when the engine breaks.
        """
        adds = [add for pair in self._paired(prompts, params) for add in self._adds(*pair, cache_salt)]
        choices = {
            add.request_id: _Choice(Completion(self.model.tokenizer, add.params, index), len(add.prompt_ids), seed, [])
            for add, index, seed in adds
        }
        with self._turn, interrupts_held() as let_interrupts_through:
            try:
                for add, _, _ in adds:
                    self.engine.add(add)
                self._run(choices, let_interrupts_through)
            finally:
                for name, choice in choices.items():
                    if not choice.completion.finished:
                        self.engine.abort(name)
        return [_generation(choice) for choice in choices.values()]

    def chat(
        self, messages: Messages | Sequence[Messages], params: SamplingParams | Sequence[SamplingParams] | None = None
    ) -> list[Generation]:
        """Answer one conversation, or each of several. Raises InvalidRequest for what is no list of messages, TemplateError."""
        chats: Any = [messages] if not messages or isinstance(messages, str | Mapping) or isinstance(messages[0], Mapping) else messages
        for chat in chats:
            if isinstance(chat, str | Mapping) or not all(isinstance(message, Mapping) for message in chat):
                hint = "a message is {'role': ..., 'content': ...}; generate() takes plain texts"
                raise InvalidRequest("a conversation is a list of messages", param="messages", hint=hint)
        return self.generate([self.model.render_chat(chat) for chat in chats], params)

    def close(self) -> None:
        """Free weights, cache and threads, once a call that runs has ended; may be called again."""
        with self._turn:
            self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _paired(
        self, prompts: Prompt | Sequence[Prompt], params: SamplingParams | Sequence[SamplingParams] | None
    ) -> list[tuple[Prompt, SamplingParams]]:
        several = _several(prompts)
        sets = [params or SamplingParams()] * len(several) if params is None or isinstance(params, SamplingParams) else params
        if len(sets) != len(several):
            raise InvalidRequest(f"{len(several)} prompts came with {len(sets)} parameter sets", param="params")
        return list(zip(several, sets, strict=True))

    def _adds(self, prompt: Prompt, params: SamplingParams, cache_salt: str) -> list[tuple[Add, int, int]]:
        """The requests of one prompt, each with the number of its choice and the seed of the whole."""
        ids = self.model.tokenizer.encode(prompt) if isinstance(prompt, str) else _ids(prompt)
        check_prompt(ids, self.model.tokenizer.vocab_size)
        resolve_max_tokens(len(ids), params.max_tokens, self.engine.max_model_len)
        adds = children(Add(f"llm-{next(self._names)}", tuple(ids), params, 0, cache_salt))
        return [(add, index, adds[0].seed) for index, add in enumerate(adds)]

    def _run(self, choices: Mapping[str, _Choice], between_steps: Callable[[], None]) -> None:
        left = len(choices)
        while left:
            for output in self.engine.step():
                choice = choices.get(output.request_id)
                if choice is None or choice.completion.finished:
                    continue
                choice.chunks.append(choice.completion.push(output))
                if choice.completion.finished:
                    left -= 1
                    self.engine.abort(output.request_id)  # ended by a stop string, it would go on
            if not self.engine.healthy:
                errors = (choice.chunks[-1].error for choice in choices.values() if choice.chunks)
                raise EngineFailed(next(filter(None, errors), "the engine failed"))
            between_steps()
        self.engine.check_idle()


def _several(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """One prompt, or a list of them, as a list; any iterable will do, arrays too."""
    if isinstance(prompts, str):
        return [prompts]
    if isinstance(prompts, bytes | Mapping) or not isinstance(prompts, Iterable):
        raise InvalidRequest(f"prompts are texts or lists of token ids, found {type(prompts).__name__}", param="prompt")
    listed: Any = list(prompts)
    return [listed] if listed and isinstance(listed[0], Integral) else listed


def _ids(prompt: object) -> list[int]:
    """Token ids as plain integers."""
    if not isinstance(prompt, bytes | Mapping) and isinstance(prompt, Iterable):
        listed = list(prompt)
        if all(isinstance(item, Integral) for item in listed):
            return [int(item) for item in listed]
    raise InvalidRequest("a prompt is a text or a list of token ids", param="prompt")


def _generation(choice: _Choice) -> Generation:
    chunks, last = choice.chunks, choice.chunks[-1]
    assert last.finish_reason is not None
    return Generation(
        text="".join(chunk.text for chunk in chunks),
        token_ids=tuple(token for chunk in chunks for token in chunk.token_ids),
        finish_reason=last.finish_reason,
        logprobs=tuple(entry for chunk in chunks for entry in chunk.logprobs),
        num_prompt=choice.num_prompt,
        num_cached=chunks[0].num_cached,
        seed=choice.seed,
        index=choice.completion.index,
        stop_reason=last.stop_reason,
        error=last.error,
    )
