"""`client.chat.completions`: the call that applications make, with the names of OpenAI's client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, TypedDict, Unpack, overload

from ...router.request import RouteRequest
from ...shared_protocol.errors import InvalidRequest
from ...shared_protocol.noise import fresh_seed
from ...shared_protocol.openai import ChatCompletion
from ...shared_protocol.sampling import SamplingParams
from ..piece import completion_of, head_of
from .answer import Answer
from .answer_state import AnswerState
from .answer_stream import AnswerStream
from .conversations import Conversations
from .pump import Pump
from .services import Services

Messages = Sequence[Mapping[str, object]]


class ChatOptions(TypedDict, total=False):
    """What a chat call may say besides its messages; None is the same as nothing."""

    model: str | None  # what the cloud is asked for when it has a part
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    max_tokens: int | None
    max_completion_tokens: int | None  # the newer name, which wins
    stop: str | Sequence[str] | None
    seed: int | None
    logprobs: bool | None
    top_logprobs: int | None
    user: str | None  # whose quota is used
    tenant: str | None  # and of which tenant
    conversation: str | None  # a name under which privacy and placeholders are remembered, until `forget`


class AsyncCompletions:
    def __init__(self, services: Services, conversations: Conversations, user: str, tenant: str | None) -> None:
        self._services = services
        self._conversations = conversations
        self._user = user
        self._tenant = tenant

    @overload
    async def create(self, *, messages: Messages, stream: Literal[False] = False, **options: Unpack[ChatOptions]) -> ChatCompletion: ...
    @overload
    async def create(self, *, messages: Messages, stream: Literal[True], **options: Unpack[ChatOptions]) -> AnswerStream: ...
    async def create(self, *, messages: Messages, stream: bool = False, **options: Unpack[ChatOptions]) -> ChatCompletion | AnswerStream:
        """Answer on the device, in the cloud, or by both; `.hybrid` of the answer (of a stream's last chunk) says where and why.

        Raises InvalidRequest, TemplateError, ContextOverflow for the request's own faults, RouteRefused when policy forbids every
        way, QuotaExceeded and CloudUnreachable when nobody is left to answer, TypeError for a keyword that is not in ChatOptions.
        With `stream`, all that can be known before the first token is raised here.
        """
        unknown = options.keys() - ChatOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"create() has no keyword {min(unknown)!r}; it has messages, stream, {', '.join(ChatOptions.__annotations__)}")
        seed, user = options.get("seed"), options.get("user")
        seed = fresh_seed() if seed is None else seed
        user = self._user if user is None else user
        tenant = options.get("tenant")
        tenant = self._tenant if tenant is None else tenant
        request = RouteRequest.of(messages, user=user, tenant=tenant, sampling=_params(options, seed), model=options.get("model"))
        policy = self._services.policy()
        remembered = self._conversations.enter(options.get("conversation"), request, policy)
        state = AnswerState(self._services, policy, self._services.moment(), request, seed, stream)
        answer = Answer(state, remembered)
        if stream:
            return await _streamed(state, answer)
        async with aclosing(answer.pieces()) as pieces:
            every = [piece async for piece in pieces]
        return completion_of(head_of(state.answered_by), every, state.info)


def _params(options: ChatOptions, seed: int) -> SamplingParams:
    newer, stop = options.get("max_completion_tokens"), options.get("stop")
    chosen: dict[str, Any] = {
        "temperature": options.get("temperature"),
        "top_p": options.get("top_p"),
        "top_k": options.get("top_k"),
        "min_p": options.get("min_p"),
        "max_tokens": options.get("max_tokens") if newer is None else newer,
        "stop": (stop,) if isinstance(stop, str) else None if stop is None else tuple(stop),
        "logprobs": _logprobs(options.get("logprobs"), options.get("top_logprobs")),
    }
    return SamplingParams(seed=seed, **{name: value for name, value in chosen.items() if value is not None})


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
