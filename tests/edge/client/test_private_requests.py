"""What is private stays on the device, or is refused with the reason."""

from __future__ import annotations

import pytest
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import ASK, PRIVATE, TO_CLOUD, ask, client_of, told, well


async def test_a_private_conversation_stays_and_stays_private(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD, well) as (client, server):
        first = await ask(client, PRIVATE, conversation="c1")
        later = await ask(client, ASK, conversation="c1")
        assert server.connections == 0
        other = await ask(client, ASK, conversation="c2")
        client.forget("c1")
        fresh = await ask(client, ASK, conversation="c1")
    assert told(first)[:2] == told(later)[:2] == ("edge", "private")
    assert told(other)[:2] == told(fresh)[:2] == ("cloud", "hard")


async def test_a_refusal_says_why(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD + "[privacy]\ntoo_hard_from = 0.0\n", well) as (client, server):
        with pytest.raises(errors.RouteRefused) as refused:
            await ask(client, PRIVATE)
        assert refused.value.code == "private_too_hard"
        with pytest.raises(errors.RouteRefused) as refused:
            await client.chat.completions.create(messages=PRIVATE, stream=True)
        assert refused.value.code == "private_too_hard"
        assert "jane" not in str(refused.value)
        assert server.connections == 0
