"""The SDK against the real server on a socket, one small model on both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hybrid.cloud.server.keys import KeyRing
from hybrid.cloud.server.running import serve_in_background
from hybrid.cloud.server.settings import ServerSettings
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.corruptor import Corruptor
from hybrid.edge.device_state import SimulatedDevice
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import AuthenticationError, ContextOverflow
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.counting_proxy import counting_proxy
from hybrid.tests.support.network_spy import network_spy
from hybrid.tests.support.real_cloud import real_frontend

ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Name three rivers."}], "max_tokens": 10, "seed": 7, "temperature": 0.8}
HARD = "[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n"
POLICIES = {
    "edge": "[complexity]\ncascade_from = 1.0\nhard_from = 1.0\n",
    "cloud": HARD + '[speculation]\nmode = "off"\n',
    "cascade": "[complexity]\ncascade_from = 0.0\nhard_from = 1.0\n[confidence]\nthreshold = 1.0\n",
    "speculative": HARD + '[speculation]\nmode = "always"\ndraft_below = 1.0\n',
}


@asynccontextmanager
async def server_of(model: Model, **settings: Any) -> AsyncIterator[str]:
    async with real_frontend(model) as frontend, serve_in_background(frontend, ServerSettings(**settings)) as server:
        yield server.url


def client_of(model: Model, url: str, route: str, **options: Any) -> AsyncHybridClient:
    options = {"context": 256, "device_state": SimulatedDevice(), "probe_timeout_s": 60} | options
    return AsyncHybridClient(model, url, policy=Policy.parse(POLICIES[route]), **options)


async def test_every_route_gives_the_one_text_and_counts_every_byte(smollm2: Model) -> None:
    texts, sent = {}, {}
    async with server_of(smollm2) as server:
        for route in POLICIES:
            async with counting_proxy(server) as proxy:
                async with client_of(smollm2, proxy.url, route) as client:
                    answer = await client.chat.completions.create(**ASK)
                    chunks = [chunk async for chunk in await client.chat.completions.create(stream=True, **ASK)]
                assert answer.hybrid is not None
                assert chunks[-1].hybrid is not None
                assert (answer.hybrid.route, chunks[-1].hybrid.route) == (route, route)
                assert chunks[-1].usage is not None
                assert answer.usage.total_tokens == chunks[-1].usage.total_tokens
                texts[route] = answer.choices[0].message.content
                assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == texts[route]
                assert answer.hybrid.spans == chunks[-1].hybrid.spans
                sent[route] = answer.hybrid.bytes_sent
                assert answer.hybrid.bytes_sent + (chunks[-1].hybrid.bytes_sent or 0) == proxy.bytes_to_server
    assert len(set(texts.values())) == 1
    assert sent["edge"] == 0 < min(sent[route] or 0 for route in ("cloud", "cascade", "speculative"))


@pytest.mark.parametrize("p", [0.3, 1.0])
async def test_wrong_drafts_change_no_text(smollm2: Model, p: float) -> None:
    vocab = smollm2.card.vocab_size
    async with server_of(smollm2) as url:
        async with client_of(smollm2, url, "cloud") as client:
            expected = (await client.chat.completions.create(**ASK)).choices[0]
        async with client_of(smollm2, url, "speculative", draft_len=4, mutate_drafts=lambda: Corruptor(p, 3, vocab)) as client:
            answer = await client.chat.completions.create(**ASK)
    assert answer.choices[0] == expected
    assert answer.hybrid is not None
    drafted = sum(span.tokens for span in answer.hybrid.spans if span.origin == "drafted")
    assert drafted < 10 if p < 1 else drafted == 0


async def test_a_private_prompt_opens_no_connection_though_a_server_waits_to_verify(smollm2: Model) -> None:
    private = ASK | {"messages": [{"role": "user", "content": "Write to jane.roe@example.com, please."}]}
    async with server_of(smollm2) as server, counting_proxy(server) as proxy:
        for route in ("speculative", "cascade", "cloud"):
            async with client_of(smollm2, proxy.url, route) as client:
                with network_spy() as seen:
                    answer = await client.chat.completions.create(**private)
                assert seen == []
                assert answer.hybrid is not None
                assert (answer.hybrid.route, answer.hybrid.reason, answer.hybrid.bytes_sent) == ("edge", "private", 0)
        assert (proxy.connections, proxy.bytes_to_server) == (0, 0)


@pytest.mark.parametrize("route", ["cloud", "speculative"])
async def test_a_key_is_asked_for_and_a_wrong_one_is_told(smollm2: Model, route: str) -> None:
    async with server_of(smollm2, keys=KeyRing({"me": "right"})) as url:
        async with client_of(smollm2, url, route, api_key="right") as client:
            answer = await client.chat.completions.create(**ASK)
            assert answer.hybrid is not None
            assert answer.hybrid.route == route
        async with client_of(smollm2, url, route, api_key="wrong") as client:
            with pytest.raises(AuthenticationError):
                await client.chat.completions.create(**ASK)


async def test_when_the_server_has_gone_the_device_answers_the_same(smollm2: Model) -> None:
    async with server_of(smollm2) as url:
        client = client_of(smollm2, url, "cloud")
        before = await client.chat.completions.create(**ASK)
    after = await client.chat.completions.create(**ASK)
    await client.close()
    assert before.hybrid is not None
    assert after.hybrid is not None
    assert before.hybrid.route == "cloud"
    assert (after.hybrid.route, after.hybrid.reason) == ("edge", "cloud_unreachable")
    assert before.choices[0].message == after.choices[0].message


async def test_what_fits_nowhere_is_refused_with_the_cloud_s_numbers(smollm2: Model) -> None:
    async with server_of(smollm2) as url, AsyncHybridClient(None, url, probe_timeout_s=60) as client:
        with pytest.raises(ContextOverflow) as overflow:
            await client.chat.completions.create(messages=ASK["messages"], max_tokens=600)
    assert overflow.value.asked > overflow.value.limit == 512
