"""What is private stays: no path of the client opens a connection for it, looks up a name for it, or probes the link for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hybrid.edge.client import AsyncHybridClient, HybridClient
from hybrid.edge.device_state import SimulatedDevice
from hybrid.edge.session import Session
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import RouteRefused
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.network_spy import network_spy
from hybrid.tests.support.scripted_server import CLOSE, Received, Script, completion, response, scripted_server

CLOUD = '[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "off"\n'
SPECULATION = '[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "always"\ndraft_below = 1.0\n'
CASCADE = "[complexity]\ncascade_from = 0.0\nhard_from = 1.0\n[confidence]\nthreshold = 1.0\n"
DRAINED = CLOUD + "[quota]\ncapacity = 0\n"
PATHS = {"cloud": CLOUD, "speculation": SPECULATION, "cascade": CASCADE, "quota": DRAINED}

SAID = "Write to jane.roe@example.com, please."
PRIVATE: dict[str, dict[str, Any]] = {
    "said now": {"messages": [{"role": "user", "content": SAID}]},
    "said before": {
        "messages": [{"role": "user", "content": SAID}, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks!"}]
    },
    "in the system prompt": {
        "messages": [{"role": "system", "content": "You serve jane.roe@example.com"}, {"role": "user", "content": "Hi"}]
    },
    "in a part of a list": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": SAID}]}]},
    "in a stop string": {"messages": [{"role": "user", "content": "Hi"}], "stop": ["jane.roe@example.com"]},
    "in the name of a model": {"messages": [{"role": "user", "content": "Hi"}], "model": "for jane.roe@example.com"},
}


def healthy(request: Received) -> Script:
    models = {"object": "list", "data": [{"id": "big", "created": 1, "owned_by": "x"}]}
    return [response(200, models if request.method == "GET" else completion("from afar"))]


def gone_when_asked(request: Received) -> Script:
    return healthy(request) if request.method == "GET" else [CLOSE]


@asynccontextmanager
async def client_of(model: Model, policy: str, answer: Callable[[Received], Script] = healthy) -> AsyncIterator[tuple[Any, Any]]:
    async with (
        scripted_server(answer) as server,
        AsyncHybridClient(
            model,
            server.url,
            policy=Policy.parse(policy),
            context=512,
            device_state=SimulatedDevice(),
            clock=iter(range(0, 10**6, 100)).__next__,
        ) as client,
    ):
        await client.load()
        yield client, server


async def ask(client: Any, **request: Any) -> Any:
    return await client.chat.completions.create(**{"max_tokens": 2, "seed": 1} | request)


@pytest.mark.parametrize(("path", "kind"), [*((path, "said now") for path in PATHS), *(("cloud", kind) for kind in list(PRIVATE)[1:])])
async def test_a_private_prompt_opens_no_connection(smollm2: Model, path: str, kind: str) -> None:
    async with client_of(smollm2, PATHS[path]) as (client, server):
        with network_spy() as seen:
            answer = await ask(client, **PRIVATE[kind])
            async for chunk in await ask(client, stream=True, **PRIVATE[kind]):
                last = chunk
        assert seen == []
        assert (server.connections, server.bytes_received) == (0, 0)
    assert (answer.hybrid.route, answer.hybrid.reason, answer.hybrid.bytes_sent) == ("edge", "private", 0)
    assert (last.hybrid.route, last.hybrid.reason, last.hybrid.bytes_sent) == ("edge", "private", 0)


@pytest.mark.parametrize("path", ["cloud", "speculation", "cascade"])
async def test_the_spy_sees_what_a_public_prompt_does_on_the_same_paths(smollm2: Model, path: str) -> None:
    async with client_of(smollm2, PATHS[path]) as (client, server):
        with network_spy() as seen:
            answer = await ask(client, messages=[{"role": "user", "content": "Hi"}])
        assert [event for event, _ in seen] == ["socket.connect"] * server.connections
        assert server.connections >= 1
        assert answer.hybrid.bytes_sent == server.bytes_received > 0


@pytest.mark.parametrize("path", ["cloud", "speculation", "cascade"])
async def test_a_private_prompt_opens_none_after_a_public_one_has_made_the_link_known(smollm2: Model, path: str) -> None:
    async with client_of(smollm2, PATHS[path]) as (client, server):
        await ask(client, messages=[{"role": "user", "content": "Hi"}])
        before = (server.connections, server.bytes_received)
        with network_spy() as seen:
            answer = await ask(client, **PRIVATE["said now"])
        assert seen == []
        assert (server.connections, server.bytes_received) == before
    assert answer.hybrid.bytes_sent == 0


async def test_neither_does_falling_back_from_a_cloud_that_is_gone(smollm2: Model) -> None:
    async with client_of(smollm2, CLOUD, gone_when_asked) as (client, server):
        await ask(client, messages=[{"role": "user", "content": "Hi"}])  # the cloud fails, and the device answers
        before = server.connections
        with network_spy() as seen:
            answer = await ask(client, **PRIVATE["said now"])
        assert seen == []
        assert server.connections == before
    assert answer.hybrid.reason == "private"


async def test_a_device_that_fails_never_hands_a_private_prompt_over(smollm2: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> None:
        raise MemoryError

    async with client_of(smollm2, CLOUD) as (client, server):
        monkeypatch.setattr(Session, "generate", broken)
        with network_spy() as seen, pytest.raises(RouteRefused):
            await ask(client, **PRIVATE["said now"])
        assert seen == []
        assert server.connections == 0


@pytest.mark.parametrize("fate", ["still waiting", "cancelled", "failed"])
async def test_a_turn_after_a_private_one_that_was_not_answered_opens_none(smollm2: Model, fate: str) -> None:
    async with client_of(smollm2, CLOUD) as (client, server):
        private = {"messages": [{"role": "user", "content": SAID}], "conversation": "c"}
        if fate == "failed":
            private["messages"][0]["content"] = [{"type": "text", "text": SAID}, {"type": "image_url", "image_url": {"url": "x"}}]
        first = asyncio.create_task(ask(client, **private))
        await asyncio.sleep(0)
        if fate == "cancelled":
            first.cancel()
        if fate != "still waiting":
            await asyncio.wait([first])
        with network_spy() as seen:
            answer = await ask(client, messages=[{"role": "user", "content": "Shorter, please."}], conversation="c")
        assert seen == []
        assert server.connections == 0
        await asyncio.wait([first])
    assert (answer.hybrid.route, answer.hybrid.reason) == ("edge", "private")


async def test_a_refused_prompt_opens_none(smollm2: Model) -> None:
    async with client_of(smollm2, CLOUD + "[privacy]\ntoo_hard_from = 0.0\n") as (client, server):
        with network_spy() as seen:
            for content in (SAID, "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"):
                with pytest.raises(RouteRefused):
                    await ask(client, messages=[{"role": "user", "content": content}])
        assert seen == []
        assert server.connections == 0


async def test_a_simple_prompt_opens_none_either(smollm2: Model) -> None:
    async with client_of(smollm2, "[complexity]\ncascade_from = 1.0\nhard_from = 1.0\n") as (client, server):
        with network_spy() as seen:
            answer = await ask(client, messages=[{"role": "user", "content": "Hi"}])
        assert seen == []
    assert (answer.hybrid.reason, answer.hybrid.bytes_sent, server.connections) == ("simple", 0, 0)


def test_the_synchronous_client_opens_none(smollm2: Model) -> None:
    with network_spy() as seen:
        options: dict[str, Any] = {"policy": Policy.parse(CLOUD), "context": 512, "device_state": SimulatedDevice()}
        with HybridClient(smollm2, "http://127.0.0.1:9", **options) as client:
            answer = client.chat.completions.create(max_tokens=2, **PRIVATE["said now"])
    assert seen == []
    assert answer.hybrid is not None
    assert answer.hybrid.reason == "private"
