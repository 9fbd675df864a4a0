"""Device and cloud of one vocabulary whose templates are not the same text: they draft where both say the same, and never else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.engine.open_engine import open_engine
from hybrid.cloud.engine.thread_client import ThreadEngineClient
from hybrid.cloud.server.threaded import serve_on_thread
from hybrid.edge.client import AsyncHybridClient
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.openai import ChatCompletion
from hybrid.tests.support.gguf_writer import CHATML, tiny_metadata, write_tiny_llama

TOGETHER = Policy.parse('[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "always"\ndraft_below = 1.0\n')
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "the time"}], "temperature": 0.8, "seed": 3, "max_tokens": 12}


async def ask_both(device: Model, cloud: Model, times: int = 1) -> tuple[list[ChatCompletion], str]:
    """Answers of device and cloud together, and the text that the cloud alone gives."""

    async def open_frontend() -> Frontend:
        return Frontend(cloud, ThreadEngineClient(open_engine(cloud, max_model_len=256)))

    with serve_on_thread(open_frontend) as server:
        async with AsyncHybridClient(device, server.url, policy=TOGETHER, context=256, draft_len=3) as client:
            answers = [await client.chat.completions.create(**ASK) for _ in range(times)]
        async with AsyncHybridClient(None, server.url) as client:
            alone = await client.chat.completions.create(**ASK)
    return answers, alone.choices[0].message.content or ""


async def test_another_template_that_says_the_same_is_drafted_on_by_messages(tmp_path: Path, tiny_llama: Model) -> None:
    cloud = load_model(write_tiny_llama(tmp_path / "cloud.gguf", template="{# mended #}" + CHATML))
    answers, alone = await ask_both(tiny_llama, cloud, times=2)
    for answer in answers:
        assert answer.hybrid is not None and answer.hybrid.drafts is not None
        assert answer.hybrid.route == "speculative"
        assert answer.hybrid.drafts.accepted == answer.hybrid.drafts.proposed > 0  # equal weights
        assert answer.choices[0].message.content == alone
    first, second = (answer.hybrid.bytes_sent for answer in answers if answer.hybrid)
    assert first is not None and second is not None and second < first  # ids are not tried again


@pytest.mark.parametrize("template", [CHATML + " ", CHATML.replace("assistant", "axxistant")], ids=["longer", "other words"])
async def test_another_template_that_says_something_else_leaves_the_answer_to_the_cloud(
    tmp_path: Path, tiny_llama: Model, template: str
) -> None:
    cloud = load_model(write_tiny_llama(tmp_path / "cloud.gguf", template=template))
    assert (len(cloud.render_chat(ASK["messages"])) == len(tiny_llama.render_chat(ASK["messages"]))) == ("axx" in template)
    answers, alone = await ask_both(tiny_llama, cloud)
    assert answers[0].hybrid is not None
    assert answers[0].hybrid.route == "cloud"
    assert answers[0].hybrid.drafts is None
    assert answers[0].choices[0].message.content == alone


async def test_a_vocabulary_with_two_words_exchanged_is_refused_though_the_template_is_the_same(tmp_path: Path, tiny_llama: Model) -> None:
    tokens = list(tiny_metadata()["tokenizer.ggml.tokens"])  # type: ignore[call-overload]
    tokens[-1], tokens[-2] = tokens[-2], tokens[-1]
    cloud = load_model(write_tiny_llama(tmp_path / "cloud.gguf", tokenizer__ggml__tokens=tokens))
    answers, alone = await ask_both(tiny_llama, cloud, times=2)
    for answer in answers:
        assert answer.hybrid is not None
        assert (answer.hybrid.route, answer.hybrid.drafts) == ("cloud", None)
        assert answer.choices[0].message.content == alone
