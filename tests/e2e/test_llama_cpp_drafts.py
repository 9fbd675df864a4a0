"""llama.cpp drafts on the device, our engine verifies: the text is the cloud's to the last token, and many drafts are accepted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hybrid.edge.client import AsyncHybridClient, HybridClient
from hybrid.edge.device_state import SimulatedDevice
from hybrid.edge.llama_cpp.library import LlamaCppUnavailable
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import ConfigError
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.real_cloud import cut_server, real_frontend

ASK = [{"role": "user", "content": "Name three rivers."}]
TOGETHER = Policy.parse('[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "always"\ndraft_below = 1.0\n')
DEVICE: dict[str, Any] = {"runtime": "llama_cpp", "threads": 1, "context": 256, "device_state": SimulatedDevice(), "probe_timeout_s": 60}


@pytest.mark.parametrize("temperature", [0.0, 0.8])
async def test_the_text_is_the_cloud_s_with_llama_cpp_on_the_device(smollm2: Model, temperature: float) -> None:
    params = SamplingParams(temperature=temperature, seed=7, max_tokens=12)
    async with (
        real_frontend(smollm2) as frontend,
        cut_server(frontend) as server,
        AsyncHybridClient(smollm2, server.url, policy=TOGETHER, draft_len=3, **DEVICE) as client,
    ):
        chunks = [chunk async for chunk in frontend.generate(smollm2.render_chat(ASK), params, "plain")]
        answer = await client.chat.completions.create(messages=ASK, temperature=temperature, seed=7, max_tokens=12)
    assert answer.choices[0].message.content == "".join(chunk.text for chunk in chunks)
    assert answer.hybrid is not None
    assert answer.hybrid.route == "speculative"
    assert sum(span.tokens for span in answer.hybrid.spans if span.origin == "drafted") >= 6  # the same model, but for its rounding


async def test_a_runtime_that_is_not_there_is_said_before_anything_is_asked(smollm2: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="'other' is not known"):
        AsyncHybridClient(smollm2, runtime="other")  # type: ignore[arg-type]
    monkeypatch.setenv("HYBRID_LIBLLAMA", "/nonexistent/libllama.so")
    client = HybridClient(smollm2, runtime="llama_cpp")
    try:
        with pytest.raises(LlamaCppUnavailable, match="HYBRID_LIBLLAMA"):
            await asyncio.to_thread(client.load)
    finally:
        await asyncio.to_thread(client.close)
