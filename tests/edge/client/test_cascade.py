"""The device answers first; the cloud, where that answer is doubtful."""

from __future__ import annotations

from typing import Any

import pytest
from hybrid.edge.session import Session
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import CASCADE, ask, client_of, failing, stream, text_of, told, well
from hybrid.tests.support.scripted_server import (
    response,
)


async def test_a_confident_answer_of_the_device_is_kept(smollm2: Model) -> None:
    async with client_of(smollm2, CASCADE + "0.0", well) as (client, server):
        answer, chunks = await ask(client), await stream(client)
        assert all(request.method == "GET" for request in server.requests)
    assert told(answer) == ("edge", "simple", [("edge", 6)])
    assert text_of(chunks) == text_of(answer)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_doubtful_one_is_not_shown_and_the_cloud_answers(smollm2: Model, streamed: bool) -> None:
    async with client_of(smollm2, CASCADE + "1.0", well) as (client, _):
        if streamed:
            chunks = await stream(client)
            assert text_of(chunks) == "Hi there"
            assert chunks[-1].hybrid is not None
            assert chunks[-1].hybrid.route == "cascade"
        else:
            answer = await ask(client)
            assert text_of(answer) == "from afar"
            assert told(answer) == ("cascade", "low_confidence", [("cloud", 3)])


async def test_a_cascade_asks_the_cloud_for_the_model_that_was_named_not_for_the_device_s(smollm2: Model) -> None:
    async with client_of(smollm2, CASCADE + "1.0", well) as (client, server):
        answers = [await ask(client), await ask(client, model="huge")]
    asked = [request.json().get("model") for request in server.requests if request.method == "POST"]
    assert asked == [None, "huge"]
    assert [answer.model for answer in answers] == ["big", "big"]


async def test_a_doubtful_answer_is_better_than_none_and_is_not_computed_twice(smollm2: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    generate = Session.generate

    def counted(self: Session, *args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return generate(self, *args, **options)

    monkeypatch.setattr(Session, "generate", counted)
    async with client_of(smollm2, CASCADE + '1.0\nsignal = "blend"', failing(response(503, b""))) as (client, _):
        answer = await ask(client)
    assert told(answer) == ("edge", "cloud_unreachable", [("edge", 6)])
    assert calls == 1
