"""`client.chat.completions`: the call that applications make, with the names of OpenAI's client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Literal, overload

from ..router.request import RouteRequest
from ..shared_protocol.errors import InvalidRequest
from ..shared_protocol.noise import fresh_seed
from ..shared_protocol.openai import ChatCompletion
from ..shared_protocol.sampling import SamplingParams
from .answer import Answer
from .answer_state import AnswerState
from .answer_stream import AnswerStream
from .conversations import Conversations
from .piece import completion_of, head_of
from .pump import Pump
from .services import Services

Messages = Sequence[Mapping[str, object]]


class AsyncCompletions:
    def __init__(self, services: Services, conversations: Conversations, user: str) -> None:
        self._services = services
        self._conversations = conversations
        self._user = user

    @overload
    async def create(
        self,
        *,
        messages: Messages,
        model: str | None = None,
        stream: Literal[False] = False,
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        min_p: float | None = None,
        max_tokens: int | None = None,
        max_completion_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        logprobs: bool | None = None,
        top_logprobs: int | None = None,
        user: str | None = None,
        conversation: str | None = None,
    ) -> ChatCompletion: ...

    @overload
    async def create(
        self,
        *,
        messages: Messages,
        model: str | None = None,
        stream: Literal[True],
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        min_p: float | None = None,
        max_tokens: int | None = None,
        max_completion_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        logprobs: bool | None = None,
        top_logprobs: int | None = None,
        user: str | None = None,
        conversation: str | None = None,
    ) -> AnswerStream: ...

    async def create(
        self,
        *,
        messages: Messages,
        model: str | None = None,
        stream: bool = False,
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        min_p: float | None = None,
        max_tokens: int | None = None,
        max_completion_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        logprobs: bool | None = None,
        top_logprobs: int | None = None,
        user: str | None = None,
        conversation: str | None = None,
    ) -> ChatCompletion | AnswerStream:
        """Answer on the device, in the cloud, or by both; `.hybrid` of the answer (of a stream's last chunk) says where and why.

        `model` is what the cloud is asked for when it has a part; `user` whose quota is used; `conversation` a name under which
        privacy is remembered when later calls do not repeat all earlier turns. Other keywords are refused by Python.

        Raises InvalidRequest, TemplateError, ContextOverflow for the request's own faults, RouteRefused when policy forbids every
        way, CloudUnreachable when nobody is left to answer. With `stream`, all that can be known before the first token is raised here.
        """
        chosen = {
            "temperature": temperature,
            "top_p": top_p,
            "top_k": top_k,
            "min_p": min_p,
            "max_tokens": max_tokens if max_completion_tokens is None else max_completion_tokens,
            "stop": (stop,) if isinstance(stop, str) else None if stop is None else tuple(stop),
            "logprobs": _logprobs(logprobs, top_logprobs),
        }
        seed = fresh_seed() if seed is None else seed
        params = SamplingParams(seed=seed, **{name: value for name, value in chosen.items() if value is not None})  # type: ignore[arg-type]
        request = RouteRequest.of(messages, user=self._user if user is None else user, sampling=params, model=model)
        floor = self._conversations.enter(conversation, request, self._services.policy)
        state = AnswerState(self._services, request, seed, stream)
        answer = Answer(state, floor)
        if stream:
            return await _streamed(state, answer)
        async with aclosing(answer.pieces()) as pieces:
            every = [piece async for piece in pieces]
        return completion_of(head_of(state.answered_by), every, state.info)


async def _streamed(state: AnswerState, answer: Answer) -> AnswerStream:
    """Once the first piece is there: what can go wrong before it is raised here."""
    pump = Pump(answer.pieces())
    try:
        first = await pump.next()
    except BaseException:
        await pump.close()
        raise
    assert first is not None
    return AnswerStream(state, pump, first)


def _logprobs(wanted: bool | None, top: int | None) -> int | None:
    if top is not None and not wanted:
        raise InvalidRequest("top_logprobs needs logprobs=True", param="top_logprobs")
    return (top or 0) if wanted else None
