"""A real model answers a redacted prompt: nothing of what was said crosses the wire, and its answer says it again."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from hybrid.cloud.server.running import serve_in_background
from hybrid.edge.client import AsyncHybridClient, conversations
from hybrid.edge.device_state import SimulatedDevice
from hybrid.router.policy.policy import Policy
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.redact.restore import restored
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.errors import HybridError
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.wire import unpack_ids
from hybrid.tests.support.counting_proxy import CountingProxy, counting_proxy
from hybrid.tests.support.real_cloud import cut_server, real_frontend
from hybrid.tests.support.redacting import mapping
from hybrid.tests.support.scripted_client import TO_CLOUD, ask, stream, text_of

JANE = "jane.roe@example.com"
REPEAT = [{"role": "user", "content": f"Repeat exactly: {JANE}"}]
REDACT = '[privacy]\nemail = "redact"\n'
CASCADE = "[complexity]\ncascade_from = 0.0\nhard_from = 1.0\n[confidence]\nthreshold = 0.0\n"
TOGETHER = '[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "always"\ndraft_below = 1.0\n'
GREEDY: dict[str, Any] = {"temperature": 0.0, "max_tokens": 24}


@pytest.fixture(autouse=True)
def same_letters_at_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small model copies some letters, and others not."""
    monkeypatch.setattr(conversations, "RedactionMapping", mapping)


def placeholder() -> RedactionMapping:
    into = mapping()
    into.placeholder("email", JANE)
    return into


@asynccontextmanager
async def through_a_wire(model: Model, edge: Model | None, policy: str) -> AsyncIterator[tuple[AsyncHybridClient, CountingProxy]]:
    options: dict[str, Any] = {"context": 512, "device_state": SimulatedDevice(), "probe_timeout_s": 60}
    async with (
        real_frontend(model) as frontend,
        serve_in_background(frontend) as server,
        counting_proxy(server.url) as wire,
        AsyncHybridClient(edge, wire.url, policy=Policy.parse(policy + REDACT), **options) as client,
    ):
        yield client, wire


async def test_the_cloud_repeats_a_placeholder_and_the_device_says_the_value(smollm2: Model, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with through_a_wire(smollm2, None, TO_CLOUD) as (client, wire):
        whole, parts = await ask(client, REPEAT, **GREEDY), await stream(client, REPEAT, **GREEDY)
        known = await ask(client, REPEAT, logprobs=True, top_logprobs=1, **GREEDY)
        with pytest.raises(HybridError) as refused:
            await ask(client, [{"role": "user", "content": f"{JANE} " * 200}], **GREEDY)
        async with aiohttp.ClientSession() as http, http.get(f"{wire.url}/metrics") as metrics:
            told = await metrics.text()
    assert "hybrid" in told and caplog.text
    assert "jane" not in f"{told}{caplog.text}{refused.value!r}{refused.value}{refused.value.__cause__!r}"
    assert JANE in text_of(whole)
    assert text_of(whole) == text_of(parts) == text_of(known)
    logprobs = known.choices[0].logprobs
    assert logprobs is not None and logprobs.content is not None
    assert "".join(one.token for one in logprobs.content) == text_of(whole)
    assert whole.usage.completion_tokens == len(logprobs.content)  # of the text that was sent
    assert JANE.encode() not in wire.to_server and b"jane" not in wire.to_server
    assert wire.to_server.count(f"Repeat exactly: {placeholder().entries()[0][0].text}".encode()) == 3
    assert whole.hybrid is not None
    assert (whole.hybrid.reason, whole.hybrid.redacted) == ("redacted", {"email": 1})


async def test_a_device_that_drafts_does_so_from_the_placeholders(smollm2: Model) -> None:
    async with real_frontend(smollm2) as frontend, cut_server(frontend) as server:
        options: dict[str, Any] = {"context": 512, "device_state": SimulatedDevice(), "probe_timeout_s": 60}
        async with AsyncHybridClient(smollm2, server.url, policy=Policy.parse(TOGETHER + REDACT), **options) as client:
            answer, parts = await ask(client, REPEAT, **GREEDY), await stream(client, REPEAT, **GREEDY)
    openings = [frame for frame in server.received if isinstance(frame, frames.Open)]
    drafts = [frame for frame in server.received if isinstance(frame, frames.Draft)]
    prompts = [smollm2.tokenizer.decode(unpack_ids(one.ids or b"", smollm2.card.vocab_size)) for one in openings]
    drafted = smollm2.tokenizer.decode([i for one in drafts for i in unpack_ids(one.ids, smollm2.card.vocab_size)])
    said = placeholder()
    assert [restored(prompt, said.values()).count(JANE) for prompt in prompts] == [1, 1]
    assert not [text for text in [*prompts, drafted] if "jane" in text]
    assert "Repeat exactly: [" in drafted  # the cloud wrote the tokens between the rounds itself
    assert JANE in text_of(answer) and text_of(answer) == text_of(parts)
    assert answer.hybrid is not None and answer.hybrid.drafts is not None
    assert (answer.hybrid.route, answer.hybrid.reason, answer.hybrid.redacted) == ("speculative", "redacted", {"email": 1})
    assert answer.hybrid.drafts.accepted > 0


async def test_an_answer_that_the_device_finishes_alone_is_filled_in_to_its_end(smollm2: Model) -> None:
    options: dict[str, Any] = {"context": 512, "device_state": SimulatedDevice(), "probe_timeout_s": 60, "draft_len": 2}
    async with real_frontend(smollm2) as frontend, cut_server(frontend, dies_at_round=2) as server:
        async with AsyncHybridClient(smollm2, server.url, policy=Policy.parse(TOGETHER + REDACT), **options) as client:
            broken = await ask(client, REPEAT, **GREEDY)
        async with AsyncHybridClient(smollm2, None, policy=Policy.parse(CASCADE + REDACT), **options) as client:
            alone = await ask(client, [{"role": "user", "content": f"Repeat exactly: {placeholder().entries()[0][0].text}"}], **GREEDY)
    assert broken.hybrid is not None
    assert (broken.hybrid.reason, [span.origin for span in broken.hybrid.spans][-1]) == ("cloud_unreachable", "edge")
    assert JANE in text_of(broken)
    assert text_of(broken) == restored(text_of(alone), placeholder().values())


async def test_a_kept_answer_of_the_device_is_filled_in_too(smollm2: Model) -> None:
    async with through_a_wire(smollm2, smollm2, CASCADE) as (client, wire):
        answer, parts = await ask(client, REPEAT, **GREEDY), await stream(client, REPEAT, **GREEDY)
    assert JANE in text_of(answer) and text_of(answer) == text_of(parts)
    assert b"EMAIL" not in wire.to_server and b"jane" not in wire.to_server
    assert answer.hybrid is not None
    assert (answer.hybrid.route, answer.hybrid.redacted) == ("edge", None)
