"""A template that came with a model file is as harmless on one path as on another: all of them render in one place."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner
from hybrid.apps.cli.main import cli
from hybrid.cloud.engine.llm import LLM
from hybrid.cloud.server.running import serve_in_background
from hybrid.cloud.server.speculate.handler import SpeculateService
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.native import NativeRuntime
from hybrid.edge.session import Session
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.errors import CloudUnreachable, TemplateError
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.gguf_writer import write_tiny_llama
from hybrid.tests.support.real_cloud import real_frontend

MESSAGES = [{"role": "user", "content": "Hello"}]
TEMPLATES = {
    "object internals": "{{ messages.__class__.__mro__[1].__subclasses__() }}",
    "10^9 rounds": "{% for a in range(99999) %}{% for b in range(10000) %}{% endfor %}{% endfor %}",
}


@pytest.fixture(params=TEMPLATES.values(), ids=TEMPLATES.keys())
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Model:
    return load_model(write_tiny_llama(tmp_path / "hostile.gguf", template=request.param))


async def test_the_server_refuses_it_on_every_route_and_serves_on(hostile: Model) -> None:
    async with real_frontend(hostile) as frontend, serve_in_background(frontend) as server, aiohttp.ClientSession() as http:
        for path in ("/v1/chat/completions", "/tokenize"):
            async with http.post(server.url + path, json={"messages": MESSAGES}) as answer:
                assert (answer.status, (await answer.json())["error"]["code"]) == (400, "template_error")
        async with http.post(server.url + "/v1/completions", json={"prompt": "a", "max_tokens": 1}) as answer:
            assert answer.status == 200


async def test_a_speculative_session_refuses_it(hostile: Model) -> None:
    async with real_frontend(hostile) as frontend:
        handler = SpeculateService(frontend, secret=b"s" * 16).connect("key")
        await handler.handle(frames.Hello((frames.VERSION,), frames.Limits()))
        messages = (frames.ChatMessage("user", "Hello"),)
        opening = frames.Open(hostile.card.name, hostile.card.vocabulary, SamplingParams(), 1, 0, 5, messages=messages)
        (error,) = await handler.handle(opening)
    assert isinstance(error, frames.Error)
    assert error.code == "template_error"


async def test_the_device_refuses_it(hostile: Model) -> None:
    session = Session(NativeRuntime(hostile, context=64), hostile)
    with pytest.raises(TemplateError):
        session.chat(MESSAGES, SamplingParams())
    async with AsyncHybridClient(hostile, context=64) as client:
        with pytest.raises(TemplateError):
            await client.chat.completions.create(messages=MESSAGES)
    async with AsyncHybridClient(hostile, "http://127.0.0.1:9", context=64) as client:
        with pytest.raises(CloudUnreachable, match="edge: the chat template"):
            await client.chat.completions.create(messages=MESSAGES)


def test_batch_generation_refuses_it(hostile: Model) -> None:
    with LLM(hostile) as llm, pytest.raises(TemplateError):
        llm.chat(MESSAGES)


def test_explaining_a_route_estimates_the_tokens_that_it_cannot_count(hostile: Model) -> None:
    result = CliRunner().invoke(cli, ["route", "--json", "--model", str(hostile.path), "Hello"], catch_exceptions=False)
    assert result.exit_code == 0
    assert '"tokens":"estimated"' in result.stdout
