"""The SDK's own quota of cloud tokens."""

from __future__ import annotations

import asyncio

from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import ASK, TO_CLOUD, ask, client_of, told, well


async def test_a_drained_quota_degrades_and_says_so(smollm2: Model) -> None:
    quota = "[quota]\ncapacity = 60\nrefill_per_s = 0.0\n"
    async with client_of(smollm2, TO_CLOUD + quota, well, clock=lambda: 0.0) as (client, _):
        answers = [await ask(client) for _ in range(9)]
        other = await ask(client, user="someone else")
    routes = [told(answer)[:2] for answer in answers]
    # the prompt is estimated by the device at about 30 tokens, the answer at 6; each costs 8 once the cloud has told
    cloud = routes.index(("edge", "quota_degraded"))
    assert routes == [("cloud", "hard")] * cloud + [("edge", "quota_degraded")] * (9 - cloud)
    assert 1 <= cloud <= 7
    assert told(other)[:2] == ("cloud", "hard")


async def test_parallel_requests_never_reserve_more_than_there_is(smollm2: Model) -> None:
    prompt = len(smollm2.render_chat(ASK))
    quota = f"[quota]\ncapacity = {2 * (prompt + 6) + 3}\nrefill_per_s = 0.0\n"
    async with client_of(smollm2, TO_CLOUD + quota, well, clock=lambda: 0.0) as (client, server):
        answers = await asyncio.gather(*(ask(client) for _ in range(5)))
        assert sum(request.method == "POST" for request in server.requests) <= 4  # two at a time, each gives back what it did not use
    assert sorted({told(answer)[1] for answer in answers}) in (["hard"], ["hard", "quota_degraded"])
