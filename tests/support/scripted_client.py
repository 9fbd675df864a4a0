"""The SDK with a real model on the device, and a cloud that does what each test needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from hybrid.edge.client import AsyncHybridClient, CloudTarget
from hybrid.edge.device_state import SimulatedDevice
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.openai import ChatCompletion, ChatCompletionChunk
from hybrid.tests.support.scripted_server import (
    END,
    Received,
    Script,
    ScriptedServer,
    chunk,
    completion,
    event,
    response,
    scripted_server,
    sse_head,
)

ASK = [{"role": "user", "content": "Say hello."}]
PRIVATE = [{"role": "user", "content": "Write to jane.roe@example.com, please."}]
TO_EDGE = "[complexity]\ncascade_from = 1.0\nhard_from = 1.0\n"
TO_CLOUD = '[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "off"\n'
CASCADE = "[complexity]\ncascade_from = 0.0\nhard_from = 1.0\n[confidence]\nthreshold = "
STREAMED = (chunk("Hi "), chunk("there"), chunk(finish="stop"))
USAGE = event(
    {
        "id": "c",
        "created": 1,
        "model": "big",
        "choices": [],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }
)


def well(request: Received) -> Script:
    """A cloud in good health."""
    if request.method == "GET":
        return [response(200, {"object": "list", "data": [{"id": "big", "created": 1, "owned_by": "x"}]})]
    if request.json().get("stream"):
        return [sse_head(), *STREAMED, USAGE, event("[DONE]"), END]
    return [response(200, completion("from afar"))]


def failing(*script: bytes | object) -> Callable[[Received], Script]:
    """In good health until it is asked for an answer."""
    return lambda request: well(request) if request.method == "GET" else script


@asynccontextmanager
async def client_of(
    edge: Model | str | None, policy: str, answer: Callable[[Received], Script] | None = None, **options: Any
) -> AsyncIterator[tuple[AsyncHybridClient, ScriptedServer]]:
    async with scripted_server(answer or well) as server:
        options = {"context": 512, "device_state": SimulatedDevice(), "probe_timeout_s": 60} | options
        async with AsyncHybridClient(edge, None if answer is None else server.url, policy=Policy.parse(policy), **options) as client:
            yield client, server


async def ask(client: AsyncHybridClient, messages: Any = ASK, **options: Any) -> ChatCompletion:
    options = {"max_tokens": 6, "seed": 3, "temperature": 0.8} | options
    answer = await client.chat.completions.create(messages=messages, **options)
    assert isinstance(answer, ChatCompletion)
    assert answer.hybrid is not None
    return answer


async def stream(client: AsyncHybridClient, messages: Any = ASK, **options: Any) -> list[ChatCompletionChunk]:
    options = {"max_tokens": 6, "seed": 3, "temperature": 0.8} | options
    return [received async for received in await client.chat.completions.create(messages=messages, stream=True, **options)]


def text_of(answer: ChatCompletion | list[ChatCompletionChunk]) -> str:
    if isinstance(answer, ChatCompletion):
        return answer.choices[0].message.content or ""
    return "".join(choice.delta.content or "" for received in answer for choice in received.choices)


def told(answer: ChatCompletion) -> tuple[object, ...]:
    assert answer.hybrid is not None
    return (answer.hybrid.route, answer.hybrid.reason, [(span.origin, span.tokens) for span in answer.hybrid.spans])


@asynccontextmanager
async def client_of_several(
    edge: Model | str | None, policy: str, answers: dict[str, Callable[[Received], Script]], **options: Any
) -> AsyncIterator[tuple[AsyncHybridClient, dict[str, ScriptedServer]]]:
    """Targets by name, in order."""
    async with AsyncExitStack() as held:
        servers = {name: await held.enter_async_context(scripted_server(answer)) for name, answer in answers.items()}
        targets = [CloudTarget(server.url, name=name) for name, server in servers.items()]
        options = {"context": 512, "device_state": SimulatedDevice(), "probe_timeout_s": 60} | options
        client = await held.enter_async_context(AsyncHybridClient(edge, targets, policy=Policy.parse(policy), **options))
        yield client, servers


def asked(server: ScriptedServer) -> int:
    """How often it was asked for an answer."""
    return sum(request.method == "POST" for request in server.requests)


def tried(answer: ChatCompletion | list[ChatCompletionChunk]) -> list[tuple[str, str]]:
    info = answer.hybrid if isinstance(answer, ChatCompletion) else answer[-1].hybrid
    assert info is not None
    return [(attempt.target, attempt.outcome) for attempt in info.attempts]
